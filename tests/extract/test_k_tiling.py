"""Every form of a loop of products computes the same numbers: operands either way round, a depth that no form divides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.extract.checked import arrays_for, check_numbers
from tests.extract.kernels import CHIP, GATED, kernel, pricer
from tile_eg.egraph import saturate
from tile_eg.extract.chaos import Random
from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.program import Instr, walk
from tile_eg.search import search_options
from tile_eg.search.compiler import lower, plan_schedule

pytestmark = pytest.mark.slow(but=4)

PRODUCT = """
kernel product[M=40, N=40, K=104, BM=32, BN=32, BK=16]({a}, {b}) -> C: f32[M, N] {{
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared   a: f16[{sa}], b: f16[{sb}]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {{
    a = A[{la}]
    b = B[{lb}]
    c += {product}
  }}
  C[bx*BM, by*BN] = c
}}
"""
LEFT = {
    False: ("A: f16[M, K]", "BM, BK", "bx*BM, k*BK", "a"),
    True: ("A: f16[K, M]", "BK, BM", "k*BK, bx*BM", "a.T"),
}
RIGHT = {
    False: ("B: f16[K, N]", "BK, BN", "k*BK, by*BN", "b"),
    True: ("B: f16[N, K]", "BN, BK", "by*BN, k*BK", "b.T"),
}


def product(ta: bool, tb: bool, **sizes: int):
    (a, sa, la, x), (b, sb, lb, y) = LEFT[ta], RIGHT[tb]
    return kernel(PRODUCT.format(a=a, b=b, sa=sa, sb=sb, la=la, lb=lb, product=f"{x} @ {y}"), **sizes)


class Form(Exact):
    """The best schedule in which the loop runs this often; once is no loop."""

    def __init__(self, trips: int) -> None:
        super().__init__()
        self.trips = trips

    def aim(self, model: Model) -> None:
        for n in model.graph.nodes:
            if n.op == "PLoop" and model.graph.trips[n.payload[0]] != self.trips:
                model.forbid((n,))
        model.minimise_time()


@pytest.mark.parametrize("trips", [7, 4, 2, 1])
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, False), (False, True), (True, True)])
def test_every_form_of_a_product_computes_the_same(ta, tb, trips):
    check_numbers(product(ta, tb), Form(trips))


@pytest.mark.parametrize("trips", [4, 2, 1])
def test_every_form_of_two_products_computes_the_same(trips):
    check_numbers(kernel(GATED), Form(trips))


def test_an_inner_dimension_shorter_than_a_tile_has_one_form():
    check_numbers(product(False, False, K=9), Exact())


def test_tiles_with_short_rows_are_loaded_as_deeper_panels():
    values = to_values(product(False, False, M=128, N=256, K=1024, BM=128, BN=256, BK=64))
    graph = saturate(values, CHIP)
    best = Exact().extract(graph, CHIP, pricer(graph), 1).best
    loads = [i for i in plan_schedule(best, CHIP).program.cube if hasattr(i, "body")][0].body
    short = [i for i in walk(loads) if isinstance(i, Instr) and i.op == "gm_to_l1" and i.srcs[0].tensor == "A"]
    assert short and all(i.cols.value > 64 for i in short)


def test_schedules_that_are_offered_differ_in_the_depth_of_their_panels():
    graph = saturate(to_values(product(False, False, M=128, N=256, K=1024, BM=128, BN=256, BK=64)), CHIP)
    found = Exact().extract(graph, CHIP, pricer(graph), 4).schedules
    assert len({graph.trips[n.payload[0]] for s in found for n in s.nodes if n.op == "PLoop"}) > 1


def test_every_form_gives_the_same_bits():
    k = product(False, False)
    graph, arrays = saturate(to_values(k), CHIP), arrays_for(k)
    runs = []
    for trips in (7, 4, 2, 1):
        best = Form(trips).extract(graph, CHIP, pricer(graph), 1).best
        runs.append(plan_schedule(best, CHIP).run(arrays)["C"].tobytes())
    assert len(set(runs)) == 1


WHOLE = """
kernel whole[M=128, N=6144, K=512, BM=128, BN=256](A: f16[M, K], B: f16[K, N]) -> D: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, K], b: f16[K, BN]
  a = A[bx*BM, 0]
  b = B[0, by*BN]
  D[bx*BM, by*BN] = exp(a @ b)
}
"""


def test_the_halves_of_a_long_product_are_loaded_while_the_others_are_used():
    big = WHOLE.replace("[M=128", "[M=4096")
    halved, whole = (lower(kernel(big), search=search_options(without=w)) for w in ((), ("product-in-two",)))
    assert halved.candidates[0].microseconds < 0.9 * whole.candidates[0].microseconds


@pytest.mark.parametrize(("long_row", "halved"), [(512, True), (1024, False)])
def test_the_chip_says_which_rows_are_long_enough_to_be_halved(long_row, halved):
    """256 halves are 512 bytes: as many as are moved in whole bursts."""
    text = WHOLE.replace("N=6144, K=512, BM=128, BN=256", "N=64, K=256, BM=64, BN=64").replace("[M=128", "[M=64")
    chip = replace(CHIP, rows=replace(CHIP.rows, bursts=(128, long_row)))
    matches = [p.matches.get("product-in-two", 0) for p in saturate(to_values(kernel(text)), chip).phases]
    assert any(matches) is halved


@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_in_two_halves_computes_the_same(transposed):
    text = WHOLE.replace("N=6144, K=512, BM=128, BN=256", "N=70, K=256, BM=64, BN=64").replace("exp(a @ b)", "a @ b")
    if transposed:
        text = text.replace("B: f16[K, N]", "B: f16[N, K]").replace("b: f16[K, BN]", "b: f16[BN, K]")
        text = text.replace("B[0, by*BN]", "B[by*BN, 0]").replace("a @ b", "a @ b.T")
    graph = saturate(to_values(kernel(text)), CHIP)
    assert any(n.op == "MmadAcc" for n in graph.nodes)
    for seed in range(2):
        check_numbers(kernel(text), Random(seed))
