"""What is computed from unwritten elements is found where it is stored, and nothing else is."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.simulator.kernels import gm, kernel
from tile_eg.simulator.run import Simulation, simulate

TEN = "Duplicate(x, 2.0f, uint64_t(10), 1, 1, 8); Duplicate(w, 3.0f, 64); Duplicate(z, 1.0f, 64); BAR"
"""x has ten elements, w all 64."""
BODIES = {
    "a comparison": "CompareScalar(bits, x, 1.0f, CMPMODE::GT, 64); BAR"
    "Select(z, bits, w, 7.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);",
    "a choice": "CompareScalar(bits, w, 1.0f, CMPMODE::GT, 64); BAR Select(z, bits, x, w, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);",
    "a cast in place": "Duplicate(z, 9.0f, 64); BAR Adds(z, x, 1.0f, 64); BAR\n"
    "Cast(z.ReinterpretCast<half>(), z, RoundMode::CAST_RINT, 64); BAR\n"
    "Cast(y, z.ReinterpretCast<half>(), RoundMode::CAST_NONE, 64); BAR Adds(z, y, 0.0f, 64);",
    "a mask and strides": "Adds(z, x, 1.0f, uint64_t(16), 2, UnaryRepeatParams(1, 1, 4, 0));",
}
ANSWER = {"a comparison": 3, "a choice": 2, "a cast in place": 3, "a mask and strides": 3}
UB = """TBuf<TPosition::VECCALC> all; pipe.InitBuffer(all, 8192);
auto x = all.GetWithOffset<float>(64, 0), y = all.GetWithOffset<float>(64, 512), z = all.GetWithOffset<float>(64, 1024);
auto w = all.GetWithOffset<float>(64, 2048); auto bits = all.GetWithOffset<uint8_t>(32, 4096);"""


@cache
def source() -> str:
    cases = "\n".join(f"case {n}: {{ {TEN} {body} }} break;" for n, body in enumerate(BODIES.values()))
    chosen = "GlobalTensor<int32_t> how; how.SetGlobalBuffer((__gm__ int32_t*)How);"
    out = "ORDER(V_MTE3); DataCopyPad(gmY, z, DataCopyExtParams(1, how.GetValue(1) * 4, 0, 0, 0));"
    body = f"{gm('Y', elements=64)} {chosen} TPipe pipe; {UB}\nswitch (how.GetValue(0)) {{\n{cases}\n}}\n{out}"
    return kernel("Y How", "AIV_ONLY", body.replace("BAR", "PipeBarrier<PIPE_V>();"))


def stored(name: str, count: int) -> Simulation:
    how = np.array([list(BODIES).index(name), count], np.int32)
    arrays = [np.zeros(64, np.float32), how]
    return simulate(source(), "k", arrays, kernel_type="AIV_ONLY", launch=1, workspace=256, outputs=[0], inout=[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_a_tail_that_is_thrown_away_is_no_fault(name: str) -> None:
    done = stored(name, 10)
    assert done.ok, done
    assert (done.outputs[0][:10] == ANSWER[name]).all()


@pytest.mark.parametrize("name", BODIES)
def test_a_tail_that_is_stored_is_one(name: str) -> None:
    assert [f.kind for f in stored(name, 11).findings] == ["uninitialised"]
