"""Cube and vector cores that meet in the workspace, and blocks that must not meet."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import CUBE, UB, gm, kernel
from tile_eg.simulator.run import Simulation, simulate

pytestmark = pytest.mark.slow(but=3)

ROWS, COLS, DEPTH = 32, 48, 64


def fused(*, rounds: int = 1, cube: str = "", late: str = "", early: str = "") -> str:
    """exp(A @ B) of each round: the product goes through the workspace, each vector core takes half of its rows.

    `cube` is what AIC does after its fixpipe, `late` what it does before the fixpipe, `early` what an AIV does before its load.
    """
    return kernel(
        "A B C",
        "MIX_AIC_1_2",
        f"""{gm("A", "half", ROWS * DEPTH)} {gm("B", "half", DEPTH * COLS)} {gm("C", "float", ROWS * COLS)}
GlobalTensor<float> ws; ws.SetGlobalBuffer((__gm__ float*)workspace, {ROWS * COLS});
if ASCEND_IS_AIC {{
  {CUBE}
  auto a1 = l1.GetWithOffset<half>({ROWS * DEPTH}, 0), b1 = l1.GetWithOffset<half>({DEPTH * COLS}, 65536);
  auto a2 = l0a.Get<half>(), b2 = l0b.Get<half>(); auto c = l0c.Get<float>();
  DataCopy(a1, gmA, Nd2NzParams(1, {ROWS}, {DEPTH}, 0, {DEPTH}, {ROWS}, 1, 0));
  DataCopy(b1, gmB, Nd2NzParams(1, {DEPTH}, {COLS}, 0, {COLS}, {DEPTH}, 1, 0));
  ORDER(MTE2_MTE1);
  for (int i = 0; i < 2; ++i) LoadData(a2[i * 1024], a1[i * 256], LoadData2DParams(0, 4, 2, 0, 0, false, 0));
  for (int i = 0; i < 4; ++i) LoadData(b2[i * 768], b1[i * 256], LoadData2DParams(0, 3, 4, 0, 0, true, 0));
  ORDER(MTE1_M);
  Mmad(c, a2, b2, MmadParams({ROWS}, {COLS}, {DEPTH}, 0, false, true));
  ORDER(M_FIX);
  for (int r = 0; r < {rounds}; ++r) {{
    {late}
    Fixpipe(ws, c, FixpipeParamsV220({COLS}, {ROWS}, {ROWS}, {COLS}, false)); /*fixpipe*/
    {cube}
  }}
}}
if ASCEND_IS_AIV {{
  {UB} auto x = ub.GetWithOffset<float>({ROWS // 2 * COLS}, 0);
  int at = GetSubBlockIdx() * {ROWS // 2 * COLS};
  for (int r = 0; r < {rounds}; ++r) {{
    if (r) {{ ORDER(MTE3_MTE2); }}
    {early}
    DataCopy(x, ws[at], {ROWS // 2 * COLS}); /*load*/
    ORDER(MTE2_V);
    CrossCoreSetFlag<2, PIPE_MTE2>(1); /*free*/
    Exp(x, x, {ROWS // 2 * COLS});
    ORDER(V_MTE3);
    DataCopy(gmC[at], x, {ROWS // 2 * COLS});
  }}
}}
""",
    )


SET, WAIT = "CrossCoreSetFlag<2, PIPE_FIX>(0); /*set*/", "CrossCoreWaitFlag(0); /*wait*/"
BACK = "CrossCoreWaitFlag(1); /*back*/"
GOOD = {"cube": f"{SET} {BACK}", "early": WAIT}


def run(source: str) -> Simulation:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) / 8 for s in ((ROWS, DEPTH), (DEPTH, COLS)))
    c = np.zeros((ROWS, COLS), np.float32)
    return simulate(source, "k", [a, b, c], kernel_type="MIX_AIC_1_2", launch=1, workspace=ROWS * COLS * 4, outputs=[2])


def line(source: str, mark: str) -> int:
    return next(i for i, text in enumerate(source.splitlines(), 1) if mark in text)


def test_a_product_reaches_both_vector_cores_through_the_workspace() -> None:
    done = run(fused(**GOOD))
    assert done.ok, done
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) / 8 for s in ((ROWS, DEPTH), (DEPTH, COLS)))
    np.testing.assert_allclose(done.outputs[0], np.exp(a.astype(np.float32) @ b.astype(np.float32)), rtol=1e-5)


@pytest.mark.slow
def test_a_flag_back_lets_the_workspace_be_used_again() -> None:
    assert run(fused(rounds=3, **GOOD)).ok


@pytest.mark.slow
def test_a_load_without_a_wait_races_with_the_fixpipe_of_the_other_core() -> None:
    source = fused(cube=BACK)
    found = run(source).findings[0]
    assert (found.kind, found.line, found.other_line) == ("race", line(source, "/*load*/"), line(source, "/*fixpipe*/"))
    assert "CrossCoreSetFlag<2, PIPE_FIX> after line" in found.message


def test_a_set_on_the_wrong_pipe_orders_nothing() -> None:
    source = fused(cube=f"CrossCoreSetFlag<2, PIPE_M>(0); {BACK}", early=WAIT)
    assert [(f.kind, f.line) for f in run(source).findings] == [("race", line(source, "/*load*/"))]


def test_the_workspace_is_written_again_while_a_vector_core_still_reads_it() -> None:
    source = fused(rounds=2, cube=SET, early=WAIT).replace("CrossCoreSetFlag<2, PIPE_MTE2>(1);", "")
    found = run(source).findings
    assert {(f.kind, f.line, f.other_line) for f in found} >= {("race", line(source, "/*load*/"), line(source, "/*fixpipe*/"))}


def test_cores_that_wait_for_one_another_are_a_deadlock() -> None:
    source = fused(late=BACK, cube=SET, early=WAIT)
    found = run(source).findings
    assert {(f.kind, f.line) for f in found} == {("deadlock", line(source, "/*back*/")), ("deadlock", line(source, "/*wait*/"))}


def test_one_vector_core_alone_does_not_release_the_cube_core() -> None:
    free = "CrossCoreSetFlag<2, PIPE_MTE2>(1);"
    source = fused(**GOOD).replace(free, f"if (GetSubBlockIdx() == 0) {free}")
    found = run(source).findings
    assert [(f.kind, f.line) for f in found] == [("deadlock", line(source, "/*back*/"))]
    assert "AIV1" in found[0].message


def test_a_cross_core_flag_may_not_be_left_over() -> None:
    source = fused(cube=SET, early=WAIT)
    assert {(f.kind, f.line) for f in run(source).findings} == {("leftover_flag", line(source, "/*free*/"))}


def test_a_kernel_is_run_as_what_it_says() -> None:
    arrays = [np.zeros(n, np.float16) for n in (ROWS * DEPTH, DEPTH * COLS)] + [np.zeros(ROWS * COLS, np.float32)]
    done = simulate(fused(**GOOD), "k", arrays, kernel_type="AIC_ONLY", launch=1, workspace=ROWS * COLS * 4, outputs=[2])
    assert [f.kind for f in done.findings] == ["kernel_type"]


BLOCKS = kernel(
    "X Y",
    "AIV_ONLY",
    f"""{gm("X Y", elements=256)} {UB} auto x = ub.GetWithOffset<float>(64, 0);
int at = GetBlockIdx() * STEP;
DataCopy(x, gmX[at], 64);
ORDER(MTE2_MTE3);
DataCopy(gmY[at], x, 64); /*store*/
""",
)


def blocks(step: int) -> Simulation:
    source = BLOCKS.replace("STEP", str(step))
    x = np.arange(256, dtype=np.float32)
    return simulate(source, "k", [x, np.zeros_like(x)], kernel_type="AIV_ONLY", launch=4, outputs=[1])


def test_blocks_that_write_their_own_parts_make_the_whole() -> None:
    done = blocks(64)
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], np.arange(256))


def test_two_blocks_that_write_the_same_bytes_are_found() -> None:
    found = blocks(56).findings[0]
    assert (found.kind, found.line) == ("block_race", line(BLOCKS, "/*store*/"))
    assert "written by two blocks" in found.message
    assert "bytes [224, 256) of Y" in found.message


WHOLE = kernel(
    "X Y",
    "AIV_ONLY",
    f"""{gm("X Y", elements=512 * 512)} {UB} auto x = ub.GetWithOffset<float>(16 * 512, 0);
DataCopy(x, gmX, 16 * 512);
ORDER(MTE2_MTE3);
for (int row = 0; row < 512; row += 16) DataCopy(gmY[row * 512], x, 16 * 512); /*store*/
""",
)


@pytest.mark.parametrize("order", [None, 3, 5])
def test_many_blocks_that_write_all_of_a_large_tensor_are_one_finding(order: int | None) -> None:
    x = np.ones((512, 512), np.float32)
    done = simulate(WHOLE, "k", [x, x], kernel_type="AIV_ONLY", launch=32, outputs=[1], order=order)
    assert [(f.kind, f.line) for f in done.findings] == [("block_race", line(WHOLE, "/*store*/"))]


ATOMIC = kernel(
    "X Y",
    "AIV_ONLY",
    f"""{gm("X Y", elements=64)} {UB} auto x = ub.GetWithOffset<float>(64, 0);
DataCopy(x, gmX, 64);
ORDER(MTE2_MTE3);
SetAtomicAdd<float>();
DataCopy(gmY, x, 64);
SetAtomicNone();
""",
)


@pytest.mark.parametrize("launch", [1, 5])
def test_blocks_may_add_atomically_to_the_same_bytes(launch: int) -> None:
    x, y = np.ones(64, np.float32), np.full(64, 10, np.float32)
    done = simulate(ATOMIC, "k", [x, y], kernel_type="AIV_ONLY", launch=launch, outputs=[1], inout=[1])
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], 10 + launch)


def alike(values: list[float]) -> Simulation:
    """Two blocks that store 64 numbers each to one place, which allows it where they are the same."""
    body = f"""{gm("X Y", elements=256)} {UB} auto x = ub.GetWithOffset<float>(64, 0);
DataCopy(x, gmX[GetBlockIdx() * 64], 64);
ORDER(MTE2_MTE3);
DataCopy(gmY, x, 64); /*store*/
"""
    x = np.repeat(np.float32([*values, 0, 0]), 64)
    return simulate(
        kernel("X Y", "AIV_ONLY", body), "k", [x, x], kernel_type="AIV_ONLY", launch=2, outputs=[1], alike=[1]
    )


def test_blocks_may_store_the_same_bytes_where_a_tensor_allows_it() -> None:
    assert alike([3, 3]).ok


def test_other_bytes_are_a_race_there_too() -> None:
    assert [f.kind for f in alike([3, 4]).findings] == ["block_race"]
