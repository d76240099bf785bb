"""What the search thinks of vector instructions, held against the timeline; and how many cores a block takes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path

import pytest

from benchmarks.rules.kernels import small
from tests.extract.kernels import CHIP, graph_of, pricer
from tile_eg.egraph import Node
from tile_eg.extract import extract
from tile_eg.extract.selection import is_half
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower

NORM = (Path(__file__).parents[2] / "examples/layer_norm.tile").read_text()
SQUARE = """
kernel square[M=64, N=128](X: f32[M, N], Y: f32[M, N]) -> C: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N]
  x = X[0, 0]
  y = Y[0, 0]
  C[0, 0] = x * x + y
}
"""
ROWS = """
kernel norm[M=256, N=512, BM=16](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N]
  x = X[bx*BM, 0]
  x = x * x
  Y[bx*BM, 0] = x * rowsum(x)[:, None]
}
"""

SUMS = """
kernel sums[M=100, N=200, K=300](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[112, 304], b: f16[304, 208]
  fragment c: f32[112, 208] = 0
  a = A[0, 0]
  b = B[0, 0]
  c += a @ b
  C[0, 0] = c
}
"""


@lru_cache
def made(name: str) -> Lowered:
    return lower(small(name))


def cycles_of(text: str, op: str, same: bool) -> set[int]:
    """Of the instructions over tiles of 32 x 128 on one core, whose operands are one value or two."""
    graph = graph_of(text)
    found = [n for n in graph.nodes if n.op == op and is_half(graph, n) and (len(set(n.children)) < len(n.children)) is same]
    return {pricer(graph).price(n).cycles["AIV.V"] for n in found}


def test_two_operands_are_read_at_full_rate_and_one_twice_at_half() -> None:
    apart, same = cycles_of(SQUARE, "VBin", same=False), cycles_of(SQUARE, "VBin", same=True)
    assert min(same) == max(apart) + 64 + 1  # repeats, and a cycle of start-up more for a product than for a sum


def stores(nodes: list[Node]) -> list[Node]:
    return [n for n in nodes if n.op == "UBToGM"]


@pytest.mark.slow
def test_rows_that_a_tile_does_not_have_cost_nothing() -> None:
    """64 rows of A, in tiles of 64 and of 112 rows."""
    fits, large = (graph_of(SUMS.replace("112", rows).replace("M=100", "M=64")) for rows in ("64", "112"))
    for op in ("GmToL1", "L0", "FixToGM"):
        least = [min(pricer(g).price(n).total for n in g.nodes if n.op == op) for g in (fits, large)]
        assert least[0] == least[1]


def test_one_less_x_takes_a_constant_and_one_instruction() -> None:
    ops = [n.op for n in made("1 - x").candidates[0].schedule.nodes]
    assert "VDup" in ops and ops.count("VBin") == 1 and "VBinS" not in ops


@pytest.mark.slow
def test_one_less_x_as_a_product_and_a_sum_is_slower() -> None:
    two = lower(small("1 - x"), search=search_options(without=["v-fill"]))
    assert made("1 - x").timeline.microseconds < two.timeline.microseconds


@pytest.mark.slow
def test_what_needs_less_room_is_ranked_beside_what_takes_less_time() -> None:
    found = extract(graph_of(NORM, N=1024), CHIP, k=3)
    parts = [any(n.op == "VRedMul" for n in s.nodes) for s in found.schedules]
    assert set(parts) == {True, False}


@pytest.mark.parametrize("shape", [(64, 64, 32), (48, 128, 48), (16, 32, 112)])
def test_a_product_costs_all_of_its_steps_those_at_its_edges_too(shape: tuple[int, int, int]) -> None:
    graph = graph_of(SUMS)
    node = next(n for n in graph.nodes if n.op == "L0")
    tile = node.payload[0]
    sizes = zip((tile.rows, tile.cols, tile.depth), shape, strict=True)
    steps = [[min(step, n - i) for i in range(0, n, step)] for n, step in sizes]
    found = pricer(graph).works(replace(node, payload=(tile, node.payload[1], *shape)))
    assert {(w.op, w.rows, w.cols, w.depth): n for w, n in found.items()} == Counter(
        (op, *cut) for cut in product(*steps) for op in ("l1_to_l0a", "l1_to_l0b", "mmad")
    )


@pytest.mark.slow
def test_a_block_with_one_vector_core_is_ranked_beside_the_best_with_two() -> None:
    found = extract(graph_of(ROWS), CHIP, k=3)
    kinds = [{is_half(s.graph, n) for n in stores(s.nodes)} for s in found.schedules]
    assert {True} in kinds and {False} in kinds
