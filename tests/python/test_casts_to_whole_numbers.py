"""`T.tile.cast` of float to float rounds to whole numbers, as its mode says; CAST_NONE copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

X = ((np.arange(64) - 32) / 4).astype(np.float32).reshape(8, 8)
MODES: dict[str, Callable[[Any], Any]] = {
    "CAST_NONE": np.copy, "CAST_RINT": np.rint, "CAST_FLOOR": np.floor, "CAST_CEIL": np.ceil, "CAST_TRUNC": np.trunc,
    "CAST_ROUND": lambda x: np.trunc(x + np.copysign(0.5, x)),
}  # fmt: skip


def every_mode(kept: bool) -> Any:
    """The tensor under each mode, one behind the other."""

    @T.prim_func
    def in_scope(A: T.Tensor((8, 8), "float32"), C: T.Tensor((len(MODES), 8, 8), "float32")):
        with T.Kernel(1) as _:  # noqa: SIM117
            with T.Scope("V"):
                x, y = T.alloc_ub((8, 8), "float32"), T.alloc_ub((8, 8), "float32")
                T.copy(A, x)
                for n, mode in enumerate(MODES):
                    T.barrier_all()
                    T.tile.cast(y, x, mode, 64)
                    T.barrier_all()
                    T.copy(y, C[n, 0, 0])

    @T.prim_func
    def free(A: T.Tensor((8, 8), "float32"), C: T.Tensor((len(MODES), 8, 8), "float32")):
        with T.Kernel(1) as _:
            x, y = T.alloc_ub((8, 8), "float32"), T.alloc_ub((8, 8), "float32")
            T.copy(A, x)
            for n, mode in enumerate(MODES):
                T.tile.cast(y, x, mode, 64)
                T.copy(y, C[n, 0, 0])

    return tile_eg.compile(in_scope if kept else free, out_idx=[-1])


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True])
def test_the_mode_says_how(kept: bool) -> None:
    np.testing.assert_array_equal(every_mode(kept)(X), np.stack([f(X) for f in MODES.values()]))


def test_a_mode_without_an_instruction_is_named_with_its_types() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 8), "float32"), C: T.Tensor((8, 8), "bfloat16")):
        with T.Kernel(1) as _:  # noqa: SIM117
            with T.Scope("V"):
                x, y = T.alloc_ub((8, 8), "float32"), T.alloc_ub((8, 8), "bfloat16")
                T.copy(A, x)
                T.tile.cast(y, x, "CAST_ODD", 64)
                T.copy(y, C)

    with pytest.raises(TileError, match="no instruction casts f32 to bf16 with CAST_ODD"):
        tile_eg.compile(main, out_idx=[-1])
