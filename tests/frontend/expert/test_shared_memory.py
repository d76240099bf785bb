"""Buffers of a kept kernel that share memory where planning is switched on: only where they do not hold values at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.ir.program import Buffer
from tile_eg.jit import CompiledKernel

PLANNED = tile_eg.PassConfigKey.TL_ASCEND_MEMORY_PLANNING
RNG = np.random.default_rng(0)


def steps(planned: bool) -> CompiledKernel:
    """Z[k] = 1 + 4 (X[0] + .. + X[k]) by way of five buffers of 48 KiB; what `s` holds goes on from trip to trip."""

    @tile_eg.jit(out_idx=[-1], pass_configs={PLANNED: planned} if planned else {})
    def kernel() -> Any:
        @T.prim_func
        def steps(X: T.Tensor((3, 96, 128), "float"), Z: T.Tensor((3, 96, 128), "float")):
            with T.Kernel(1, is_npu=True) as _:
                x = T.alloc_ub((96, 128), "float")
                a = T.alloc_ub((96, 128), "float")
                b = T.alloc_ub((96, 128), "float")
                s = T.alloc_ub((96, 128), "float")
                z = T.alloc_ub((96, 128), "float")
                with T.Scope("V"):
                    T.tile.fill(s, 0.0)
                    for k in T.serial(3):
                        T.copy(X[k, 0, 0], x)
                        T.set_flag("mte2", "v", 0)
                        T.wait_flag("mte2", "v", 0)
                        T.tile.mul(a, x, 2.0)
                        T.set_flag("v", "mte2", 0)
                        T.wait_flag("v", "mte2", 0)
                        T.tile.mul(b, a, 2.0)
                        T.tile.add(s, s, b)
                        T.tile.add(z, s, 1.0)
                        T.set_flag("v", "mte3", 0)
                        T.wait_flag("v", "mte3", 0)
                        T.copy(z, Z[k, 0, 0])
                        T.set_flag("mte3", "v", 0)
                        T.wait_flag("mte3", "v", 0)

        return steps

    return kernel()


def place(b: Buffer) -> range:
    return range(b.addresses[0], b.addresses[-1] + b.slot_bytes)


def test_sharing_has_to_be_asked_for() -> None:
    with pytest.raises(TileError) as caught:
        steps(False).compile()
    assert "the buffers in UB take" in caught.value.message
    assert "TL_ASCEND_MEMORY_PLANNING" in caught.value.help


@pytest.mark.slow
def test_buffers_that_share_memory_hold_what_was_written() -> None:
    x = RNG.uniform(-1, 1, (3, 96, 128)).astype(np.float32)
    np.testing.assert_allclose(steps(True)(x), np.cumsum(4 * x, axis=0) + 1, rtol=1e-5, atol=1e-5)


def test_a_buffer_that_goes_on_from_trip_to_trip_shares_with_none() -> None:
    buffers = {b.name: b for b in steps(True).compile().program.buffers}
    kept = place(buffers["s"])
    for name in "xabz":
        other = place(buffers[name])
        assert other.stop <= kept.start or kept.stop <= other.start
