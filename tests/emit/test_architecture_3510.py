"""Kernels for architecture 3510: right numbers, no races, and the cores meet in UB and in L1 where they can."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.extract import kernels
from tests.extract.checked import arrays_for
from tile_eg.chips import known_chips, load_chip
from tile_eg.cost_models import search_model
from tile_eg.egraph import saturate
from tile_eg.emit.ascend_c.index import EmitError, Scope
from tile_eg.emit.ascend_c.kernel import node_lines
from tile_eg.emit.sync.check import races
from tile_eg.extract.chaos import Random
from tile_eg.extract.pricing import Pricer
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import Instr, walk
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning, plan_schedule

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {
    "gemm_exp": {"M": 128, "N": 128, "K": 64},
    "matmul_add": {"M": 128, "N": 128, "K": 128, "BM": 64, "BN": 64},
    "flash_attention": {"S": 128, "H": 1, "D": 32, "BM": 32, "BN": 32},
}
"""Examples whose products vector cores go on with."""

PRODUCT = """kernel product[M=40, N=56, K=72](A: {a}, B: {b}) -> (C: f32[M, N], D: f32[M, N]) {{
  grid (bx) = (1)
  shared   a: {a}, b: {b}
  fragment c: f32[M, N], d: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  c = {product}
  d = abs(c)
  C[0, 0] = c
  D[0, 0] = d
}}
"""
WAYS = {"a @ b": ("[M, K]", "[K, N]"), "a @ b.T": ("[M, K]", "[N, K]"), "a.T @ b": ("[K, M]", "[K, N]")}


def kernel(name: str, **sizes: int) -> Kernel:
    return kernels.kernel((EXAMPLES / f"{name}.tile").read_text(), **sizes)


@cache
def lowered(name: str, chip: str) -> Lowered:
    return lower(kernel(name, **SMALL[name]), chip, search=search_options(effort="quick"))


def check(made: Lowered, orders: tuple[int | None, ...] = (None, 1, -1)) -> None:
    """Fails where a number is wrong or the simulator finds something, in the program's order or in unfavourable ones."""
    arrays = arrays_for(made.kernel)
    wanted = meaning(made.kernel, arrays)
    for order in orders:
        run = made.run(arrays, order=order)
        for name, want in wanted.items():
            np.testing.assert_allclose(run[name].astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-3)


def instructions(made: Lowered) -> list[Instr]:
    return [n for n in (*walk(made.program.cube), *walk(made.program.vector)) if isinstance(n, Instr)]


def gm_bytes(made: Lowered) -> int:
    """Bytes that a run moves from and to GM, the workspace included."""
    counts = made.run(arrays_for(made.kernel)).counts.bytes
    return sum(n for path, n in counts.items() if "GM" in path.split("->"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_what_crosses_between_the_cores_is_right_in_any_order(name: str) -> None:
    check(lowered(name, "950"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_judge_of_flags_finds_nothing(name: str) -> None:
    assert races(lowered(name, "950").program) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_no_workspace_is_needed(name: str) -> None:
    assert lowered(name, "950").program.workspace == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_fewer_bytes_pass_gm_than_on_2201(name: str) -> None:
    assert gm_bytes(lowered(name, "950")) < gm_bytes(lowered(name, "910B2"))


@pytest.mark.slow
def test_probabilities_go_straight_to_l1() -> None:
    assert "ub_to_l1" in {i.op for i in instructions(lowered("flash_attention", "950"))}


@pytest.mark.slow
def test_a_full_tile_goes_to_both_vector_cores_at_once() -> None:
    text = str(lowered("gemm_exp", "950").source)
    assert "dualDstCtl = 1" in text and "subBlockId" not in text


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [{"M": 120, "N": 72}, {"M": 70, "N": 140}, {"M": 300, "N": 140, "BM": 256, "BN": 128}])
def test_edges_of_a_tensor_reach_the_vector_core_that_has_them(sizes: dict[str, int]) -> None:
    check(lower(kernel("gemm_exp", K=64, **sizes), "950", search=search_options(effort="quick")))


@pytest.mark.slow
def test_rows_that_end_in_a_fractal_pass_the_workspace() -> None:
    made = lower(kernel("flash_attention", S=100, H=1, D=32, BM=32, BN=32), "950", search=search_options(effort="quick"))
    check(made)
    assert "ub_to_l1" not in {i.op for i in instructions(made)}


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("way", WAYS)
def test_operands_are_turned_on_their_way_to_l0(way: str, dtype: str) -> None:
    a, b = (dtype + shape for shape in WAYS[way])
    check(lower(kernels.kernel(PRODUCT.format(a=a, b=b, product=way)), "950", search=search_options(effort="quick")), (None,))


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("chip", known_chips())
def test_2201_is_offered_no_way_but_through_the_workspace(chip: str) -> None:
    graph = saturate(to_values(kernel("gemm_exp", **SMALL["gemm_exp"])), load_chip(chip))
    assert not {"FixToUB", "UBToL1", "L1ToUB"} & {n.op for n in graph.nodes}


@pytest.mark.slow
def test_a_direct_way_is_refused_for_2201_by_its_name() -> None:
    program = lowered("flash_attention", "950").program
    there = next(i for i in instructions(lowered("flash_attention", "950")) if i.op == "ub_to_l1")
    with pytest.raises(EmitError, match="no Ascend C is known for ub_to_l1 on dav-2201"):
        node_lines(Scope(replace(program, chip="910B2"), "AIV"), there)


BOTH = """kernel both[M=64, N=64, K=64, BM=64](A: f16[M, K], B: f16[K, N]) -> (C: f32[M, N], D: f16[M, K]) {
  grid (bx) = (ceildiv(M, BM))
  shared   a: f16[BM, K], b: f16[K, N]
  fragment c: f32[BM, N], d: f16[BM, K]
  a = A[bx*BM, 0]
  b = B[0, 0]
  c = a @ b
  d = exp(a)
  C[bx*BM, 0] = c
  D[bx*BM, 0] = d
}
"""


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("rows", [64, 90, 100])
@pytest.mark.parametrize("order", [None, 1, -1])
def test_an_operand_goes_on_from_l1_to_the_vector_cores(rows: int, order: int | None) -> None:
    chip, k = load_chip("950"), kernels.kernel(BOTH, M=rows)
    graph = saturate(to_values(k), chip)
    pricer = Pricer(graph, chip, search_model("analytic", chip))
    found = (Random(seed).extract(graph, chip, pricer, 1).best for seed in range(20))
    planned = plan_schedule(next(s for s in found if "L1ToUB" in {n.op for n in s.nodes}), chip)
    arrays = arrays_for(k)
    run = planned.run(arrays, order=order)
    for name, want in meaning(k, arrays).items():
        np.testing.assert_allclose(run[name].astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-3)


STORED = """kernel stored[M=512, N=510, K=64](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid (bx, by) = (ceildiv(M, 128), ceildiv(N, 128))
  shared a: f16[128, K], b: f16[K, 128]
  fragment c: f32[128, 128] = 0
  a = A[bx*128, 0]
  b = B[0, by*128]
  c += a @ b
  C[bx*128, by*128] = c
}"""


@pytest.mark.parametrize(("cols", "ways"), [(510, ["fixpipe", "ub_to_gm"]), (512, ["fixpipe"])])
def test_rows_off_a_block_are_stored_by_the_vector_cores(cols: int, ways: list[str]) -> None:
    found = lower(load_text(STORED).instantiate({"N": cols}), "950")
    nodes = walk((*found.program.cube, *found.program.vector))
    assert [i.op for i in nodes if isinstance(i, Instr) and i.op in ("fixpipe", "ub_to_gm")] == ways
    a, b = (np.random.default_rng(n).uniform(-1, 1, shape).astype(np.float16) for n, shape in enumerate([(512, 64), (64, cols)]))
    run = found.run({"A": a, "B": b})
    assert not run.findings
    assert np.allclose(run["C"], a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
