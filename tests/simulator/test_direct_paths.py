"""Architecture 3510: L0C into the UBs of the vector cores, UB to L1 and back, and what is refused there by its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.simulator.asc import file_of, without
from tile_eg.errors import TileError
from tile_eg.simulator.findings import Simulation
from tile_eg.simulator.kernel_run import run_kernel
from tile_eg.simulator.program import Options
from tile_eg.simulator.spec import read_spec

pytestmark = pytest.mark.slow(but=3)

M, N, K = 32, 64, 48
ORDER = "#define ORDER(pipes) SetFlag<HardEvent::pipes>(0); WaitFlag<HardEvent::pipes>(0)\n"
CAPACITIES = {"L1": 524288, "UB": 253952, "L0A": 65536, "L0B": 65536, "L0C": 262144}

PRODUCT = f"""LocalTensor<half> a1(TPosition::A1, 0, {M * K}), b1(TPosition::B1, 65536, {K * N});
    LocalTensor<half> a2(TPosition::A2, 0, {M * K}), b2(TPosition::B2, 0, {K * N});
    DataCopy(a1, ga, Nd2NzParams(1, {M}, {K}, 0, {K}, {M}, 1, 0));
    DataCopy(b1, gb, Nd2NzParams(1, {K}, {N}, 0, {N}, {K}, 1, 0));
    ORDER(MTE2_MTE1);
    LoadData(a2, a1, LoadData2DParamsV2(0, 0, {M // 16}, {K // 16}, {M // 16}, {M // 16}, false, 0));
    LoadData(b2, b1, LoadData2DParamsV2(0, 0, {K // 16}, {N // 16}, {K // 16}, {N // 16}, true, 0));
    ORDER(MTE1_M);
    Mmad(c, a2, b2, MmadParams({M}, {N}, {K}, 0, false, true));
    ORDER(M_FIX);"""

SPEC = f"""blocks = 1
[[arguments]]
name = "a"
shape = [{M}, {K}]
dtype = "f16"
file = "a.npy"
[[arguments]]
name = "b"
shape = [{K}, {N}]
dtype = "f16"
file = "b.npy"
[[arguments]]
name = "c"
shape = [{M}, {N}]
output = true
"""


def program(cube: str, vector: str) -> str:
    """C = A @ B of half: what AIC does with the product in L0C, and what the vector cores do with what they get in UB."""
    return f"""#include "kernel_operator.h"
using namespace AscendC;
{ORDER}constexpr FixpipeConfig rows = {{CO2Layout::ROW_MAJOR, true}}, blocks = {{CO2Layout::NZ, true}};
extern "C" __global__ __mix__(1, 2) void k(GM_ADDR A, GM_ADDR B, GM_ADDR C)
{{
    GlobalTensor<half> ga, gb;
    GlobalTensor<float> gc;
    ga.SetGlobalBuffer((__gm__ half*)A);
    gb.SetGlobalBuffer((__gm__ half*)B);
    gc.SetGlobalBuffer((__gm__ float*)C);
    LocalTensor<float> c(TPosition::CO1, 0, {M * N}), u(TPosition::VECIN, 0, {M * N}), v(TPosition::VECIN, 65536, {M * N});
    LocalTensor<float> l(TPosition::C1, 262144, {M * N});
    const int half_block = GetSubBlockIdx();
    if ASCEND_IS_AIC {{
    {PRODUCT}
    {cube}
    }}
    if ASCEND_IS_AIV {{
    {vector}
    }}
}}
"""


def run(folder: Path, source: str, spec: str = SPEC, architecture: int = 3510) -> Simulation:
    rng = np.random.default_rng(0)
    for name, shape in {"a": (M, K), "b": (K, N)}.items():
        np.save(folder / f"{name}.npy", rng.integers(-4, 5, shape).astype(np.float16))
    (folder / "spec.toml").write_text(spec)
    options = Options(architecture=architecture, capacities=CAPACITIES, auto_sync=False)
    return run_kernel(file_of(folder, source), read_spec(folder / "spec.toml"), options)


def right(folder: Path, done: Simulation) -> bool:
    a, b = (np.load(folder / f"{name}.npy").astype(np.float64) for name in "ab")
    return done.ok and np.array_equal(done.outputs[0], a @ b)


def fixpipe(dual: int, stride: int = N) -> str:
    return (
        f"FixpipeParamsArch3510<CO2Layout::ROW_MAJOR> way({N}, {M}, {M}, {stride}); way.dualDstCtl = {dual};\n"
        "Fixpipe<float, float, rows>(u, c, way);\nCrossCoreSetFlag<2, PIPE_FIX>(3);"
    )


WAIT = "CrossCoreWaitFlag(3);"
HALF_ROWS = f"{WAIT} DataCopy(gc[half_block * {M * N // 2}], u, {M * N // 2});"
HALF_COLUMNS = f"{WAIT} DataCopy(gc[half_block * {N // 2}], u, DataCopyParams({M}, {N // 2 * 4 // 32}, 0, {N // 2 * 4 // 32}));"


@pytest.mark.slow
def test_a_result_is_split_over_both_vector_cores_by_rows(tmp_path: Path) -> None:
    assert right(tmp_path, run(tmp_path, program(fixpipe(1), HALF_ROWS)))


@pytest.mark.slow
def test_a_result_is_split_over_both_vector_cores_by_columns(tmp_path: Path) -> None:
    assert right(tmp_path, run(tmp_path, program(fixpipe(2, N // 2), HALF_COLUMNS)))


@pytest.mark.slow
@pytest.mark.parametrize("second", [0, 1])
def test_a_result_goes_whole_to_one_vector_core(tmp_path: Path, second: int) -> None:
    cube = fixpipe(0).replace("way.dualDstCtl = 0;", f"way.subBlockId = {second};")
    vector = f"{WAIT} if (half_block == {second}) DataCopy(gc, u, {M * N});"
    assert right(tmp_path, run(tmp_path, program(cube, vector)))


@pytest.mark.slow
def test_a_vector_core_that_does_not_wait_races_with_the_fixpipe(tmp_path: Path) -> None:
    done = run(tmp_path, without(program(fixpipe(1), HALF_ROWS), WAIT))
    assert {f.kind for f in done.findings} >= {"race", "leftover_flag"}, done
    race = next(f for f in done.findings if f.kind == "race")
    assert "Fixpipe" in race.message and "CrossCoreSetFlag" in race.message


@pytest.mark.slow
def test_a_second_result_must_wait_until_the_first_has_left_ub(tmp_path: Path) -> None:
    cube = f"{fixpipe(1)}\n{{ {fixpipe(1)} }}"
    done = run(tmp_path, program(cube, f"{HALF_ROWS} {HALF_ROWS}"))
    assert "race" in {f.kind for f in done.findings}, done


@pytest.mark.slow
@pytest.mark.parametrize(("dual", "rows", "columns"), [(1, 31, 64), (2, 32, 48)])
def test_a_split_wants_even_rows_and_columns_in_32s(tmp_path: Path, dual: int, rows: int, columns: int) -> None:
    cube = fixpipe(dual).replace(f"way({N}, {M},", f"way({columns}, {rows},")
    done = run(tmp_path, program(cube, HALF_ROWS))
    assert "field" in {f.kind for f in done.findings} and any("dualDstCtl" in f.message for f in done.findings)


def test_ub_goes_to_l1_and_back(tmp_path: Path) -> None:
    cube = f"""{fixpipe(0)}
    CrossCoreWaitFlag(4);
    DataCopyL1ToUB<float, 1>(v, l, {M * N});
    CrossCoreSetFlag<2, PIPE_MTE1>(5);"""
    vector = f"""{WAIT}
    if (half_block == 0) DataCopy(l, u, {M * N});
    CrossCoreSetFlag<2, PIPE_MTE3>(4);
    CrossCoreWaitFlag(5);
    if (half_block == 1) DataCopy(gc, v, {M * N});"""
    assert right(tmp_path, run(tmp_path, program(cube, vector)))


def test_l1_that_a_vector_core_writes_is_not_there_by_itself(tmp_path: Path) -> None:
    cube = f"{fixpipe(0)}\nDataCopyL1ToUB<float, 1>(v, l, {M * N});"
    vector = f"{WAIT} if (half_block == 0) DataCopy(l, u, {M * N}); DataCopy(gc, u, {M * N});"
    assert "race" in {f.kind for f in run(tmp_path, program(cube, vector)).findings}


def test_flags_of_mode_4_are_for_one_vector_core(tmp_path: Path) -> None:
    cube = fixpipe(1).replace(
        "CrossCoreSetFlag<2, PIPE_FIX>(3);", "CrossCoreSetFlag<4, PIPE_FIX>(3); CrossCoreSetFlag<4, PIPE_FIX>(19);"
    )
    vector = HALF_ROWS.replace(WAIT, "CrossCoreWaitFlag<4, PIPE_MTE3>(3);")
    assert right(tmp_path, run(tmp_path, program(cube, vector)))
    done = run(tmp_path, without(program(cube, vector), "CrossCoreSetFlag<4, PIPE_FIX>(19);"))
    assert {f.kind for f in done.findings} == {"deadlock"}


def test_a_wait_holds_the_pipe_that_it_names(tmp_path: Path) -> None:
    vector = HALF_ROWS.replace(WAIT, "CrossCoreWaitFlag<2, PIPE_V>(3);")
    done = run(tmp_path, program(fixpipe(1), vector))
    assert "race" in {f.kind for f in done.findings}, done


TWICE = f"{WAIT} Adds(v, u, 1.0f, {M * N // 2}); Adds(v, v, -1.0f, {M * N // 2}); ORDER(V_MTE3);"


def test_vector_instructions_follow_one_another_without_a_barrier(tmp_path: Path) -> None:
    vector = f"{TWICE} DataCopy(gc[half_block * {M * N // 2}], v, {M * N // 2});"
    assert right(tmp_path, run(tmp_path, program(fixpipe(1), vector)))


def test_2201_has_none_of_these_paths(tmp_path: Path) -> None:
    with pytest.raises(TileError, match=r"'(FixpipeParamsArch3510|DataCopyL1ToUB)' is not simulated") as error:
        run(tmp_path, program(fixpipe(1), HALF_ROWS), architecture=2201)
    assert "another architecture" in error.value.help


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SetLoadDataRepeatWithStride({1, 1, 0, 1});", "SetLoadDataRepeatWithStride"),
        ("LoadDataWithSparse(c, c, c, LoadData2DParams());", "LoadDataWithSparse"),
        ("Reg::RegTensor<float> r;", "Reg"),
        ("MicroAPI::RegTensor<float> r;", "MicroAPI"),
        ("hifloat8_t x;", "hifloat8_t"),
        ("asc_vf_call<k>(A);", "asc_vf_call"),
    ],
)
def test_what_else_3510_has_is_refused_by_its_name(tmp_path: Path, text: str, name: str) -> None:
    with pytest.raises(TileError, match=f"'{name}' is not simulated"):
        run(tmp_path, program(text, ""))


@pytest.mark.few(2)
@pytest.mark.parametrize("word", ["__simd_vf__", "__simt_vf__", "__VEC_SCOPE__", "__simd_callee__"])
def test_functions_of_the_register_and_thread_models_are_refused_by_their_word(tmp_path: Path, word: str) -> None:
    source = program("", "").replace('extern "C"', f'{word} inline void f(int) {{}}\nextern "C"', 1)
    with pytest.raises(TileError, match=f"'{word}' is not simulated"):
        run(tmp_path, source)
