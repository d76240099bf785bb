"""What is overwritten before anything has read it: a handover that stands once for several values brings the last one alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import CUBE, UB, gm, kernel, vector
from tile_eg.simulator.run import Simulation, simulate

TURNS = 3


def between_cores(cube: str, vector: str, lenient: bool = False) -> Simulation:
    """The cube core stores L0C to the workspace, `cube` says when; the vector core loads and stores it, `vector` says when."""
    fill = "DataCopy(a, gmX, 256); ORDER(MTE2_MTE1); LoadData(l, a, LoadData2DParams(0, 1, 1, 0, 0, false, 0));"
    fill += "LoadData(r, a, LoadData2DParams(0, 1, 1, 0, 0, true, 0)); ORDER(MTE1_M);"
    fill += "Mmad(c, l, r, MmadParams(16, 16, 16, 0, false, true)); ORDER(M_FIX);"
    out = "Fixpipe<float, float, CFG_ROW_MAJOR>(gmworkspace, c, FixpipeParamsV220(16, 16, 16, 16, false));"
    text = kernel(
        "X Y",
        "MIX_AIC_1_1",
        f"""{gm("X", "half", 256)} {gm("Y workspace", elements=256)}
if ASCEND_IS_AIC {{
  {CUBE} auto a = l1.GetWithOffset<half>(256, 0), l = l0a.GetWithOffset<half>(256, 0), r = l0b.GetWithOffset<half>(256, 0);
  auto c = l0c.GetWithOffset<float>(256, 0);
  {fill} {cube.replace("STORE", out)}
}}
if ASCEND_IS_AIV {{
  {UB} auto b = ub.GetWithOffset<float>(256, 0);
  {vector.replace("LOAD", "DataCopy(b, gmworkspace, 256); ORDER(MTE2_MTE3); DataCopy(gmY, b, 256); PipeBarrier<PIPE_ALL>();")}
}}""",
    )
    x, y = np.ones(256, np.float16), np.zeros(256, np.float32)
    return simulate(text, "k", [x, y], kernel_type="MIX_AIC_1_1", launch=1, outputs=[1], workspace=1024, lenient=lenient)


EACH = (
    f"for (int i = 0; i < {TURNS}; ++i) {{ STORE CrossCoreSetFlag<2, PIPE_FIX>(0); CrossCoreWaitFlag(1); }}",
    f"for (int i = 0; i < {TURNS}; ++i) {{ CrossCoreWaitFlag(0); LOAD CrossCoreSetFlag<2, PIPE_MTE2>(1); }}",
)
ONCE = (
    f"for (int i = 0; i < {TURNS}; ++i) {{ STORE PipeBarrier<PIPE_FIX>(); }} CrossCoreSetFlag<2, PIPE_FIX>(0);",
    f"CrossCoreWaitFlag(0); for (int i = 0; i < {TURNS}; ++i) {{ LOAD }}",
)


@pytest.mark.slow
def test_a_handover_for_each_value_brings_each() -> None:
    assert between_cores(*EACH).ok


@pytest.mark.slow
def test_one_handover_for_several_values_between_cores_is_found() -> None:
    run = between_cores(*ONCE)
    assert {f.kind for f in run.findings} == {"overwritten"}
    assert "Fixpipe (AIC, FIX) in an earlier pass has written to GM, and nothing has read that" in run.findings[0].message


@pytest.mark.slow
def test_kernels_of_others_may_write_what_nobody_reads() -> None:
    assert between_cores(*ONCE, lenient=True).ok


@pytest.mark.parametrize("stored", ["gmworkspace", "gmB"])
def test_an_output_may_be_stored_over_and_a_workspace_may_not(stored: str) -> None:
    store = f"Duplicate(x, 1.0f, 64); ORDER(V_MTE3); DataCopy({stored}, x, 64); ORDER(MTE3_V);"
    text = vector("A B", f"{gm('workspace', elements=64)} {store}\n{store}")
    a, b = np.ones(256, np.float32), np.zeros(256, np.float32)
    run = simulate(text, "k", [a, b], kernel_type="AIV_ONLY", launch=1, outputs=[1], inout=[1], workspace=256)
    assert {f.kind for f in run.findings} == ({"overwritten"} if stored == "gmworkspace" else set())
