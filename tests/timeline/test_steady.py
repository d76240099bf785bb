"""Skipping ahead: a loop that has found its rhythm takes what it takes when every trip is run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timeline_programs import K, fused_program, gemm_program, load, store, stream_loop, vector_program, vexp

from tile_eg.chips import load_chip
from tile_eg.ir.index import ZERO, Expr, const, less, minimum, var
from tile_eg.ir.program import AIV, Loop, Node, Program, SetFlag, Tile, WaitFlag, When
from tile_eg.timeline import steady
from tile_eg.timeline.cores import Core, Place
from tile_eg.timeline.engine import run
from tile_eg.timeline.expressions import unsettled
from tile_eg.timeline.rings import renamed, rings_of
from tile_eg.timeline.shapes import shapes_of
from tile_eg.timeline.steady import KEPT, Together

CHIP = load_chip("910B2")


def agree(program: Program, *, skips: bool = True, rel: float = 1e-9) -> None:
    """Both ways take as long, and move and work as much; the quick one runs few instructions."""
    quick, exact = run(program, CHIP), run(program, CHIP, exact=True)
    assert quick.extrapolated == skips
    assert quick.block_cycles == pytest.approx(exact.block_cycles, rel=rel)
    assert quick.busy == pytest.approx(exact.busy)
    assert quick.bytes == pytest.approx(exact.bytes)
    assert not skips or len(quick.spans) < 0.7 * len(exact.spans)


def worked(trips: int, *body: Node) -> Program:
    return vector_program(Loop("k", trips, body))


def every(n: int) -> Expr:
    return less(K % n, 1)


def test_work_in_every_third_trip_is_a_period_of_three() -> None:
    agree(worked(300, vexp(), When(every(3), (vexp("c"),))))


@pytest.mark.parametrize("period", [16, 85, 256])
def test_a_long_period_is_found_where_no_short_one_is(period: int) -> None:
    """Every so-many-th tile of a core is the first of a sequence: no stretch between them is worth a skip of its own."""
    program = worked(4_000, vexp(), When(less(K * 48 % (48 * period), 1) * less(K, 3_900), (vexp("c"),)))
    agree(program)
    assert len(run(program, CHIP).spans) < 3 * (period + 100) + 300


def test_what_comes_without_a_period_is_run() -> None:
    """Whether the remainder of a square by a prime is small, in fewer trips than the prime."""
    program = worked(300, vexp(), When(less(K * K % 1009, 505), (vexp("c"),)))
    assert len(run(program, CHIP).spans) > 0.9 * len(run(program, CHIP, exact=True).spans)


def test_work_that_stops_in_the_middle_ends_the_rhythm_there() -> None:
    agree(worked(400, vexp(), When(less(K, 173), (vexp("c"), vexp("c")))))


def test_work_that_starts_in_the_middle_ends_the_rhythm_there() -> None:
    agree(worked(400, vexp(), When(less(const(250), K), (vexp("c"), vexp("c")))))


J, LONGER = var("j"), 2 + less(const(172), K)


@pytest.mark.parametrize(
    "condition",
    [less(J, LONGER), less(J - 1 + 12 * less(J, 1), LONGER), less(K - J, K - 8 + LONGER)],
    ids=["more trips", "a trip late", "linear in both"],
)
def test_work_that_changes_between_the_ends_of_a_loop_inside_ends_the_rhythm(condition: Expr) -> None:
    agree(worked(400, Loop("j", 12, (vexp(), When(condition, (vexp("c"),))))))


def test_a_tail_that_is_shorter_is_run() -> None:
    rows = minimum(64, 64 * 300 - 40 - K * 64)
    agree(worked(300, replace(vexp(), rows=rows)))


def test_sizes_that_grow_with_every_trip_are_run_one_by_one() -> None:
    agree(worked(60, replace(vexp(), rows=K + 1)), skips=False)


def test_a_guard_of_two_variables_is_looked_at_in_both() -> None:
    inner = Loop("j", 50, (When(less(var("j"), 25), (vexp(),)), vexp("c")))
    agree(vector_program(Loop("k", 40, (inner, When(less(K, 20), (vexp("c"),))))))


@pytest.mark.parametrize(("slots", "more"), [(2, 3), (3, 5)])
def test_rings_of_different_lengths_have_a_period_of_one_trip(slots: int, more: int) -> None:
    """Not one that all of them need to come round."""
    alike, different = (len(run(_two_rings(100, slots, n), CHIP).spans) for n in (slots, more))
    agree(_two_rings(100, slots, more))
    assert different <= alike + 4 * more


def test_after_a_skip_each_flag_of_a_ring_has_the_number_of_its_trip() -> None:
    for trips in range(60, 66):
        agree(_two_rings(trips, 3, 4))


def test_flags_that_two_rings_share_are_taken_for_alike_only_by_their_numbers() -> None:
    loop = Loop("k", 300, (SetFlag("V", "MTE3", K % 2), WaitFlag("V", "MTE3", K % 2), vexp(), *_in_turns(3)))
    assert not renamed(rings_of(loop, unsettled), 1)
    agree(vector_program(loop))


def _in_turns(slots: int) -> tuple[Node, ...]:
    return SetFlag("V", "MTE3", K % slots), WaitFlag("V", "MTE3", K % slots)


def _two_rings(trips: int, slots: int, more: int) -> Program:
    """A loop that loads into a ring and stores from one, whose flags are not taken back before they come round."""
    *free, loop = stream_loop(trips, slots)[: 2 * slots + 1]
    assert isinstance(loop, Loop)
    ahead = [SetFlag("MTE3", "V", const(slots + k)) for k in range(more)]
    body = (*loop.body, WaitFlag("MTE3", "V", K % more + slots), vexp("c"), SetFlag("MTE3", "V", K % more + slots))
    ends = [WaitFlag("MTE3", "V", const(slots + k)) for k in range(more)]
    return vector_program(*ahead, *free, Loop("k", trips, body), *ends, *stream_loop(trips, slots)[2 * slots + 1 :])


def test_a_pipe_that_runs_ahead_until_its_queue_is_full_has_no_rhythm_before() -> None:
    agree(vector_program(Loop("k", 300, (load(),)), store()))


def test_a_loop_of_few_trips_inside_of_a_long_one() -> None:
    inner = Loop("j", 3, (vexp(), vexp("c")))
    agree(vector_program(Loop("k", 200, (inner, load()))))


def test_three_nested_loops() -> None:
    inner = Loop("i", 20, (vexp(),))
    middle = Loop("j", 20, (inner, vexp("c")))
    agree(vector_program(Loop("k", 20, (middle, load()))))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    trips=st.integers(20, 200), slots=st.integers(1, 5), n=st.integers(1, 5), until=st.integers(0, 200), tail=st.integers(0, 63)
)
def test_any_ring_with_any_guard_and_tail(trips: int, slots: int, n: int, until: int, tail: int) -> None:
    *free, loop = stream_loop(trips, slots)[: 2 * slots + 1]
    assert isinstance(loop, Loop)
    rows = minimum(64, trips * 64 - tail - K * 64)
    extra = (When(every(n), (replace(vexp("c"), rows=rows),)), When(less(K, until), (vexp("c"),)))
    program = vector_program(*free, Loop("k", trips, (*loop.body, *extra)), *stream_loop(trips, slots)[2 * slots + 1 :])
    quick, exact = run(program, CHIP), run(program, CHIP, exact=True)
    assert quick.block_cycles == pytest.approx(exact.block_cycles, rel=1e-6)
    assert quick.busy == pytest.approx(exact.busy)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(trips=st.integers(5, 300), skewed=st.booleans(), tile=st.sampled_from([32, 64, 128]))
def test_two_cores_that_wait_for_each_other(trips: int, skewed: bool, tile: int) -> None:
    program = fused_program(trips, skewed, tile)
    quick, exact = run(program, CHIP), run(program, CHIP, exact=True)
    assert quick.block_cycles == pytest.approx(exact.block_cycles, rel=1e-9)
    assert quick.busy == pytest.approx(exact.busy)


def test_the_longest_loops_take_no_longer_than_short_ones() -> None:
    long = [len(run(p, CHIP).spans) for p in (gemm_program(100_000, 2), fused_program(100_000, True))]
    short = [len(run(p, CHIP).spans) for p in (gemm_program(100, 2), fused_program(100, True))]
    assert long == short


def over_tiles(tiles: int, trips: int, skewed: bool) -> Program:
    """The fused program once for each tile: a loop in which both cores meet, within another one."""
    inner = fused_program(trips, skewed)
    return replace(inner, cube=(Loop("task", tiles, inner.cube),), vector=(Loop("task", tiles, inner.vector),))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(tiles=st.integers(1, 40), trips=st.integers(2, 60), skewed=st.booleans())
def test_two_cores_that_meet_in_a_loop_for_each_tile(tiles: int, trips: int, skewed: bool) -> None:
    program = over_tiles(tiles, trips, skewed)
    quick, exact = run(program, CHIP), run(program, CHIP, exact=True)
    assert quick.block_cycles == pytest.approx(exact.block_cycles, rel=1e-9)
    assert quick.busy == pytest.approx(exact.busy)


def test_a_long_period_of_two_cores_that_wait_for_each_other() -> None:
    inner = fused_program(4, False)
    once_more = replace(vexp("u"), srcs=(Tile("u"),))
    tiles = Loop("task", 1_000, (*inner.vector, When(less(var("task") % 20, 1), (once_more,))))
    agree(replace(inner, cube=(Loop("task", 1_000, inner.cube),), vector=(tiles,)))


@pytest.mark.parametrize("skewed", [False, True])
def test_thousands_of_tiles_take_no_longer_than_a_hundred(skewed: bool) -> None:
    """A kernel of more tiles than a launch has blocks is timed without going through them."""
    few, many = (len(run(over_tiles(tiles, 50, skewed), CHIP).spans) for tiles in (100, 5_000))
    assert few == many


@pytest.mark.parametrize(("nested", "skipped"), [(True, 3), (False, 0)])
def test_a_few_trips_in_front_of_one_that_differs_are_skipped_where_they_hold_loops(nested: bool, skipped: int) -> None:
    shapes = shapes_of(Loop("t", 6, (When(less(var("t"), 4), (vexp(),)),)), unsettled, lambda _: ZERO)
    core, place = Core(AIV, CHIP, {"t": 1}), Place("t", 6, shapes, nested=nested)
    assert steady._ahead(core, place, 1, begun=False) == skipped


def test_the_same_program_gives_the_same_timeline() -> None:
    one, two = (run(gemm_program(77, 3), CHIP) for _ in range(2))
    assert (one.cycles, one.busy, one.bytes) == (two.cycles, two.busy, two.bytes)


def test_what_nobody_looks_at_is_not_kept() -> None:
    plain, kept = run(gemm_program(20, 2), CHIP, record=False), run(gemm_program(20, 2), CHIP)
    assert plain.spans == plain.handovers == ()
    assert plain.cycles == kept.cycles


def test_where_no_rhythm_is_found_only_the_last_rounds_are_kept() -> None:
    together = Together([])
    for _ in range(10 * KEPT):
        together.round()
    assert len(together.seen.seen) == KEPT


def test_cores_whose_trips_ahead_are_not_alike_are_not_compared_period_by_period(monkeypatch) -> None:
    monkeypatch.setattr(steady, "_ahead", lambda *_, **__: 0)
    monkeypatch.setattr(steady, "pace", None)
    assert not run(fused_program(100, True), CHIP).extrapolated
