"""Products that add up in one accumulator lay it out alike, however each of them is cut."""

from __future__ import annotations

import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import CHIP, PRODUCT_AND_SQUARE, SHORTER_PRODUCT, TWO_PRODUCTS, graph_of, kernel, pricer
from tile_eg.egraph import Graph, Node
from tile_eg.extract.accumulators import Accumulators, layout
from tile_eg.extract.base import Refused
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.chaos import Random
from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model

IN_A_LOOP = """
kernel in_a_loop[M=100, N=256, K=384, BK=128](A: f16[M, K], B: f16[K, N], C: f16[M, BK], D: f16[BK, N]) -> E: f32[M, N] {
  grid bx = 1
  shared a: f16[M, BK], b: f16[BK, N], c: f16[M, BK], d: f16[BK, N]
  fragment e: f32[M, N] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[0, k*BK]
    b = B[k*BK, 0]
    e += a @ b
  }
  c = C[0, 0]
  d = D[0, 0]
  e += c @ d
  E[0, 0] = e
}
"""


def cut_otherwise(graph: Graph, nodes: list[Node]) -> list[Node]:
    """The choice with one of its two products cut so that it lies otherwise in L0C."""
    pairs = ((n, m) for n in nodes if n.op == "L0" for m in graph.classes[n.cls])
    cut, other = next((n, m) for n, m in pairs if layout(m) != layout(n))
    return [other if n is cut else n for n in nodes]


def adding_up(graph: Graph) -> list[Node]:
    """A choice in which both products add up in one accumulator."""
    model = Model(graph, CHIP, pricer(graph))
    for n in graph.nodes:
        if n.op in ("FixToWS", "FixToUB"):
            model.cp.add(model.chosen[n.index] == 0)
    return Exact()._solve(model, Exact().extract(graph, CHIP, pricer(graph), 1))  # type: ignore[return-value]


@pytest.mark.slow
@pytest.mark.parametrize("text", [TWO_PRODUCTS, IN_A_LOOP], ids=["one block", "behind a loop"])
def test_products_that_lie_differently_in_one_accumulator_are_refused(text):
    graph = graph_of(text)
    wrong = cut_otherwise(graph, adding_up(graph))
    prices = [pricer(graph).price(n) for n in graph.nodes]
    with pytest.raises(Refused, match="one accumulator as 100 rows"):
        build_schedule(graph, wrong, prices, CHIP)


def test_the_solver_knows_before_that_they_have_to_lie_alike():
    graph = graph_of(TWO_PRODUCTS)
    model = Model(graph, CHIP, pricer(graph))
    for n in cut_otherwise(graph, adding_up(graph)):
        model.cp.add(model.chosen[n.index] == 1)
    assert Exact()._solve(model, Exact().extract(graph, CHIP, pricer(graph), 1)) is None


def test_an_accumulator_of_one_product_is_left_alone():
    graph = graph_of(IN_A_LOOP.replace("  e += c @ d\n", ""))
    assert Accumulators(graph).groups == []


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("text", [TWO_PRODUCTS, IN_A_LOOP, PRODUCT_AND_SQUARE, SHORTER_PRODUCT])
@pytest.mark.parametrize("sizes", [{"M": 100}, {"M": 65, "K": 32}])
@pytest.mark.parametrize("seed", range(2))
def test_products_in_one_accumulator_compute_the_same_however_they_are_cut(text, sizes, seed):
    check_numbers(kernel(text, **sizes), Random(seed))
