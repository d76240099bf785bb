"""Masks by position are made in the trips in which they change something."""

from __future__ import annotations

from functools import lru_cache

import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import CHIP, graph_of, kernel
from tile_eg.egraph import Graph, Node
from tile_eg.extract import extract
from tile_eg.extract.exact import Exact
from tile_eg.extract.masks import needed, share
from tile_eg.ir.index import evaluate
from tile_eg.ir.program import Instr, walk
from tile_eg.search.compiler import plan_schedule

BELOW = """
kernel below[M=128, N=128, BM=32, BN=32](X: f32[M, N]) -> Y: f32[M] {{
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, BN]
  fragment l: f32[BM] = 0
  for k in pipelined({trips}) {{
    x = X[bx*BM, k*BN]
    parallel (i, j) in (BM, BN) {{ x[i, j] = select({condition}, x[i, j], 0) }}
    l = l + rowsum(exp(x))
  }}
  Y[bx*BM] = l
}}
"""
CONDITIONS = {
    "ge": "bx*BM + i >= k*BN + j", "gt": "bx*BM + i > k*BN + j", "le": "bx*BM + i <= k*BN + j", "lt": "bx*BM + i < k*BN + j",
    "other way": "k*BN + j >= bx*BM + i", "row": "bx*BM + i >= k*BN",
    "far": "bx*BM + i >= k*BN + j + 70000 * (1 - k)",
}  # fmt: skip


@lru_cache
def graph(condition: str, trips: str = "4") -> Graph:
    return graph_of(BELOW.format(condition=CONDITIONS[condition], trips=trips))


def mask(g: Graph) -> Node:
    return next(n for n in g.nodes if n.op == "VMaskOn")


def holds(condition: str, bx: int, k: int) -> bool:
    """Whether the condition is true of every element of a tile."""
    text = CONDITIONS[condition]
    return all(eval(text, {"bx": bx, "k": k, "BM": 32, "BN": 32, "i": i, "j": j}) for i in range(32) for j in range(32))


@pytest.mark.few(3)
@pytest.mark.slow(but=3)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_mask_is_made_just_where_an_element_does_not_compare(condition):
    g = graph(condition)
    made = {(bx, k) for bx in range(4) for k in range(4) if evaluate(needed(g, mask(g)), {"block": bx, "k": k})}
    assert made == {(bx, k) for bx in range(4) for k in range(4) if not holds(condition, bx, k)}


def test_its_share_is_that_of_all_trips_of_all_blocks():
    assert share(graph("ge"), mask(graph("ge"))) == 10 / 16


def test_trips_that_a_block_does_not_have_are_no_part_of_its_share():
    g = graph("ge", "bx + 1")
    assert share(g, mask(g)) == 4 / 10


def instructions(condition: str, trips: str = "4") -> list[Instr]:
    p = plan_schedule(extract(graph(condition, trips), CHIP).best, CHIP).program
    return [n for n in walk(p.vector) if isinstance(n, Instr)]


def test_the_text_makes_it_there_alone():
    masks = [i for i in instructions("ge", "bx + 1") if i.op.startswith("vmask")]
    assert len(masks) == 1 and {evaluate(masks[0].when, {"block": 3, "k": k}) for k in (0, 1, 2)} == {0}


def test_it_lies_in_the_place_of_what_it_masks():
    (made,) = [i for i in instructions("ge", "bx + 1") if i.op.startswith("vmask")]
    assert made.dst in made.srcs


def positions(condition: str) -> set[str]:
    """The element types of the positions that masks look at, in tiles of long rows."""
    text = BELOW.format(condition=condition, trips="4").replace("N=128", "N=512").replace("BN=32", "BN=128")
    p = plan_schedule(extract(graph_of(text), CHIP).best, CHIP).program
    return {p.buffer(i.dst.buffer).dtype.name for i in walk(p.vector) if isinstance(i, Instr) and i.op == "vramp"}


@pytest.mark.slow
def test_positions_are_short_where_all_of_them_are_exact_so():
    assert positions(CONDITIONS["ge"]) == {"f16"}
    assert positions("bx*BM + 70*i >= k*BN + j") == {"f32"}


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("trips", ["4", "bx + 1"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_masked_sums_are_right(condition, trips):
    check_numbers(kernel(BELOW.format(condition=CONDITIONS[condition], trips=trips)), Exact())
