"""Fewer barriers: V's instructions in groups that do not need each other."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extract.checked import check_numbers
from tests.extract.kernels import CHIP, kernel
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.exact import Exact
from tile_eg.extract.order import in_groups
from tile_eg.extract.schedule import LoopStep
from tile_eg.report.text import duration
from tile_eg.search import grouped, search_options
from tile_eg.search.compiler import Lowered, lower
from tile_eg.search.grouped import barriers, least

TURNED = (Path(__file__).parents[2] / "examples/rope/rope_halves.tile").read_text("utf-8")
CHAIN = """
kernel chain[M=8192, N=512, BM=8](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N]
  x = X[bx*BM, 0]
  Y[bx*BM, 0] = exp(sqrt(exp(x)))
}
"""


@cache
def compiled(text: str, *without: str, **sizes: int) -> Lowered:
    return lower(kernel(text, **sizes), search=search_options(without=without))


def groups(order: list[int], edges: set[tuple[int, int]]) -> list[list[int]]:
    """The order cut before each item that needs one since the last cut."""
    out: list[list[int]] = [[]]
    for x in order:
        if any((y, x) in edges for y in out[-1]):
            out.append([])
        out[-1].append(x)
    return out


def test_two_chains_go_side_by_side() -> None:
    edges = {(1, 2), (2, 3), (4, 5), (5, 6)}
    assert in_groups([1, 2, 3, 4, 5, 6], edges, {1, 2, 3, 4, 5, 6}) == [1, 4, 2, 5, 3, 6]


def test_what_other_pipes_do_stands_where_it_can_and_parts_no_group() -> None:
    assert in_groups([1, 2, 3, 4], {(1, 2), (3, 4)}, {1, 3, 4}) == [1, 2, 3, 4]


@pytest.mark.slow
@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda e: e[0] < e[1]), max_size=25))
def test_an_order_in_groups_keeps_all_needs_and_has_no_more_groups(edges: set[tuple[int, int]]) -> None:
    order = in_groups(list(range(10)), edges, set(range(10)))
    assert sorted(order) == list(range(10))
    assert all(order.index(a) < order.index(b) for a, b in edges)
    assert len(groups(order, edges)) <= len(groups(list(range(10)), edges))


@pytest.mark.slow
def test_both_halves_of_a_head_go_side_by_side_though_the_second_is_loaded_later() -> None:
    low, without = compiled(TURNED, S=4096, H=40), compiled(TURNED, "fewer-barriers", S=4096, H=40)
    assert barriers(without.candidates[0].schedule.top) == 200
    assert barriers(low.candidates[0].schedule.top) == 120  # two fewer for each of 40 heads
    assert low.cost.microseconds < 0.97 * without.cost.microseconds


@pytest.mark.slow
def test_what_is_in_groups_already_has_no_other_order() -> None:
    low = compiled(TURNED, S=4096, H=40)
    made = grouped._made(low.form, low.candidates[0].schedule)
    assert (made.candidates, made.why) == ((), "no other order has fewer barriers")


@pytest.mark.slow
def test_the_fastest_schedule_is_tried_first() -> None:
    able = [c for c in compiled(TURNED, "fewer-barriers", S=4096, H=40).form.candidates if grouped._able(c.schedule)]
    offers = list(grouped.offers(SimpleNamespace(candidates=able, setting=SimpleNamespace(chip=CHIP))))  # type: ignore[arg-type]
    assert [o.what for o in offers] == [f"the schedule of {duration(c.microseconds * 1e-6)}" for c in able]
    assert len({o.bound for o in offers}) == 1


def step(dst: int, *srcs: int, pipe: str = "AIV.V") -> Any:
    return SimpleNamespace(dst=dst, srcs=srcs, scratch=None, pipe=pipe)


def test_v_waits_before_what_needs_its_last_instructions_as_often_as_a_loop_has_trips() -> None:
    apart, chained, over = [step(1, 0), step(2, 0)], [step(1, 0), step(2, 1)], [step(1, 0), step(0, 3)]
    assert [barriers(items) for items in (apart, chained, over)] == [0, 1, 1]
    assert barriers([LoopStep(1, 40, [*chained, step(3, 2)])]) == 80


def test_the_longest_chain_says_how_often_v_waits_at_the_least() -> None:
    chains = [step(1, 0), step(2, 1), step(3, 0), step(4, 3), step(5, 2, 4)]
    assert (least(chains), barriers(chains)) == (2, 3)
    assert in_groups([0, 1, 2, 3, 4], {(0, 1), (2, 3), (1, 4), (3, 4)}, set(range(5))) == [0, 2, 1, 3, 4]


def test_v_does_not_wait_for_itself_where_another_pipe_reads() -> None:
    assert barriers([step(1, 0), step(2, 1, pipe="AIV.MTE3"), step(3, 0)]) == 0


@pytest.mark.slow
def test_one_chain_has_no_other_order() -> None:
    low = compiled(CHAIN)
    assert all(least(c.schedule.top) == barriers(c.schedule.top) for c in low.form.candidates)
    assert not [t for t in low.tried if t.offer.move.name == "fewer-barriers"]


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("order", [None, (2, 0, 0)], ids=["a block a tile", "persistent"])
@pytest.mark.parametrize("extractor", [Exact(), Worst(), Random(0)], ids=["exact", "worst", "random"])
def test_groups_compute_what_the_kernel_means(extractor: Exact | Worst | Random, order: tuple[int, int, int] | None) -> None:
    check_numbers(kernel(TURNED, S=90, H=3, D=64), extractor, order, grouped=True)
