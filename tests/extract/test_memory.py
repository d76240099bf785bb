"""Addresses from lifetimes: what is live together never overlaps, and rings give way before a kernel is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extract.kernels import CHIP, TRICKY, graph_of, kernel
from tile_eg.extract import extract
from tile_eg.extract.base import Refused
from tile_eg.extract.memory import ON_CHIP, _closer, _Line, assign, lifetimes
from tile_eg.extract.packing import APART, Life, Rivals, _free, least_bytes, packed
from tile_eg.extract.placing import kept_for_tiles
from tile_eg.extract.schedule import Storage
from tile_eg.ops.types import F32, Level
from tile_eg.search.compiler import lower

SOFTMAX = Path(__file__).parents[2] / "examples/softmax.tile"
NORM = (Path(__file__).parents[2] / "examples/layer_norm.tile").read_text()
RUNNING = (Path(__file__).parents[2] / "examples/scans/cumsum_rows.tile").read_text()
SCALED = """
kernel scaled[H=256, C=64](K: f16[H, C, C], G: f32[H, C]) -> Y: f32[H, C, C] {
  grid h = H
  shared   k: f16[C, C]
  fragment a: f32[C, C], g: f32[C]
  k = K[h, 0, 0]
  g = G[h, 0]
  g = cumsum(g)
  a = k @ k.T
  Y[h, 0, 0] = a * g[:, None]
}
"""
lives = st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(1, 30)).map(lambda t: (t[0], t[0] + t[1], 32 * t[2]))


def storage(i: int, size: int) -> Storage:
    return Storage(i, f"s{i}", Level.UB, 1, size // 4, F32, None, slot_bytes=size)


@pytest.mark.slow
@given(st.lists(lives, min_size=1, max_size=12))
def test_storages_that_live_together_lie_apart(given_lives):
    group = [(i, Life(a, b), storage(i, n)) for i, (a, b, n) in enumerate(given_lives)]
    places, _ = packed(group, 32, Rivals(group))
    for i, a, s in group:
        for j, b, t in group:
            if i < j and a.first <= b.last and b.first <= a.last:
                assert places[i] + s.bytes <= places[j] or places[j] + t.bytes <= places[i]


@pytest.mark.slow
@given(st.lists(lives, min_size=1, max_size=12))
def test_no_packing_is_smaller_than_what_is_live_at_once(given_lives):
    group = [(i, Life(a, b), storage(i, n)) for i, (a, b, n) in enumerate(given_lives)]
    _, used = packed(group, 32, Rivals(group))
    assert used >= max(sum(n for a, b, n in given_lives if a <= t <= b) for t in range(60))


@pytest.mark.slow
@given(st.lists(st.tuples(lives, st.integers(0, 12), st.integers(0, 12)), max_size=12))
def test_the_least_bytes_are_those_of_the_fullest_moment(some):
    """A storage needs none in its gap."""
    found = [(Life(a, b, gap=(a + x, min(b, a + x + y)) if y and a + x < b else None), n) for (a, b, n), x, y in some]
    needed = lambda life, m: life.first <= m <= life.last and not (life.gap and life.gap[0] < m < life.gap[1])  # noqa: E731
    moments = (sum(n for life, n in found if needed(life, m)) for m in {life.first for life, _ in found})
    assert least_bytes(found) == max(moments, default=0)


@pytest.mark.slow
@given(
    st.sets(st.integers(0, 20), min_size=1), st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6), st.sampled_from((APART, "same")))),
)  # fmt: skip
def test_free_addresses_are_all_that_meet_no_rival(starts, size, some):
    rivals = [(at, at + n, how) for at, n, how in some]
    free = [a for a in sorted(starts) if not any(a < e and b < a + size and (how == APART or a != b) for b, e, how in rivals)]
    assert list(_free(sorted(starts), int, size, sorted(rivals))) == free


def test_an_elementwise_result_takes_the_place_of_an_operand_that_dies():
    a, b = Life(0, 2), Life(3, 9, in_place_of={0})
    places, used = packed(group := [(0, a, storage(0, 64)), (1, b, storage(1, 64))], 32, Rivals(group))
    assert places == {0: 0, 1: 0} and used == 64


def test_a_result_never_takes_a_shifted_part_of_its_operand():
    a, b = Life(0, 2), Life(3, 9, in_place_of={0})
    places, _ = packed(group := [(0, a, storage(0, 64)), (1, b, storage(1, 96))], 32, Rivals(group))
    assert places[1] >= 64


def test_what_is_still_being_stored_keeps_its_place_in_the_next_tile():
    out, early, late = Life(20, 21, drained=5), Life(3, 4), Life(8, 9)
    group = [(i, life, storage(i, 64)) for i, life in enumerate((out, early, late))]
    places, used = packed(group, 32, Rivals(group))
    assert places[1] != places[0] == places[2] and used == 128


@pytest.mark.slow
def test_what_only_what_is_made_once_reads_leaves_its_place_to_the_tiles():
    best = lower(kernel(NORM, M=65536)).candidates[0].schedule
    kept = kept_for_tiles(best)
    x = next(s for s in best.storages.values() if s.name == "x")
    before = [best.addresses[i][0] for i in best.once - kept if best.storages[i].level is Level.UB]
    assert kept and before and all(at < best.addresses[x.id][-1] + x.slot_bytes for at in before)


@pytest.mark.slow
def test_the_cube_core_writes_to_no_place_of_what_is_made_once():
    best = lower(kernel(SCALED), "950").candidates[0].schedule
    a = next(s for s in best.storages.values() if s.name == "a" and s.level is Level.UB)
    before = [(best.addresses[i][0], best.storages[i].bytes) for i in best.once - kept_for_tiles(best)]
    filled = [(at, at + a.slot_bytes) for at in best.addresses[a.id]]
    assert before and all(at + size <= low or high <= at for at, size in before for low, high in filled)


@pytest.mark.slow
def test_what_only_what_is_made_once_reads_takes_turns_where_ub_has_not_room_for_all_of_it():
    best = lower(kernel(RUNNING, M=16384, N=480, BM=8)).candidates[0].schedule
    made = [best.storages[i].bytes for i in best.once if best.storages[i].level is Level.UB]
    assert sum(made) > CHIP.level_bytes(Level.UB) >= best.peaks[Level.UB]


@pytest.mark.slow
def test_every_example_stays_within_its_memories():
    for text in TRICKY.values():
        best = extract(graph_of(text), CHIP).best
        assert all(best.peaks[level] <= CHIP.level_bytes(level) for level in ON_CHIP)


@pytest.mark.slow
def test_a_state_lives_through_its_whole_loop():
    best = extract(graph_of(TRICKY["gated"], K=2048), CHIP).best
    lives_of = lifetimes(best)
    accumulators = [s.id for s in best.storages.values() if s.level is Level.L0C]
    loads = [s.id for s in best.storages.values() if s.level is Level.L1]
    assert all(
        lives_of[c].first <= lives_of[a].first and lives_of[a].last <= lives_of[c].last for c in accumulators for a in loads
    )


INSIDE = ((1,), 0)


def owner(**fields: object) -> Life:
    """A state of loop 1 that is read for the last time at 20 and written at 31."""
    return Life(0, 60, **{"gap": (20, 31), "at": INSIDE, **fields})  # type: ignore[arg-type]


def test_what_lives_between_a_states_last_read_and_its_next_write_has_its_place():
    _, used = packed(group := [(0, owner(), storage(0, 64)), (1, Life(23, 26, at=INSIDE), storage(1, 32))], 32, Rivals(group))
    assert used == 64


def test_what_lives_longer_than_the_gap_has_a_place_of_its_own():
    _, used = packed(group := [(0, owner(), storage(0, 64)), (1, Life(23, 34, at=INSIDE), storage(1, 64))], 32, Rivals(group))
    assert used == 128


def test_at_another_lag_the_gap_is_at_another_time():
    _, used = packed(group := [(0, owner(), storage(0, 64)), (1, Life(23, 26, at=((1,), 2)), storage(1, 64))], 32, Rivals(group))
    assert used == 128


def test_a_step_that_reads_the_state_and_writes_into_its_gap_must_work_in_place():
    apart, _ = packed(group := [(0, owner(), storage(0, 64)), (1, Life(21, 26, at=INSIDE), storage(1, 64))], 32, Rivals(group))
    group = [(0, owner(), storage(0, 64)), (1, Life(21, 26, in_place_of={0}, at=INSIDE), storage(1, 64))]
    together, _ = packed(group, 32, Rivals(group))
    assert apart[0] != apart[1] and together[0] == together[1]


def test_a_reductions_scratch_lives_for_its_step_alone():
    best = extract(graph_of(SOFTMAX.read_text(), N=1024, BM=16), CHIP).best
    lives_of = lifetimes(best, roomy=True)
    scratch = {s.scratch for s, _ in best.walk() if s.scratch is not None}
    assert scratch and all(lives_of[sid].last == lives_of[sid].first + 1 for sid in scratch)


@pytest.mark.slow
def test_what_a_trip_stores_shares_its_place_before_anything_that_it_loads():
    best = extract(graph_of((SOFTMAX.parent / "flash_attention.tile").read_text()), CHIP).best
    nothing, first, *_ = _closer(best, Level.UB, set(), _Line(best))
    pipes = {step.pipe for step, _ in best.walk() if first.close & {step.dst, *step.srcs}}
    assert not nothing.close and first.close and pipes == {"AIV.V", "AIV.MTE3"}


@pytest.mark.slow
def test_what_leaves_keeps_its_place_until_it_has_left_while_there_is_room():
    best = extract(graph_of((SOFTMAX.parent / "flash_attention.tile").read_text()), CHIP).best
    first = _closer(best, Level.UB, set(), _Line(best))[1]
    (leaving,) = first.close
    best.storages[leaving].slots = 1
    soon, later = (lifetimes(best, True, False, *first._replace(waiting=waiting))[leaving].last for waiting in (True, False))
    assert not first.waiting and soon < later


def test_two_scratches_side_by_side_have_one_place_where_there_is_no_room_for_two():
    best = extract(graph_of(SOFTMAX.read_text(), N=1024, BM=16), CHIP).best
    lives_of = lifetimes(best, roomy=True, tight=True)
    scratch = {s.scratch for s, _ in best.walk() if s.scratch is not None}
    assert all(lives_of[sid].last == lives_of[sid].first for sid in scratch)


def test_a_placement_is_refused_as_soon_as_more_moves_closer_than_it_may():
    schedule = extract(graph_of(SOFTMAX.read_text()), CHIP, k=1).schedules[0]
    with pytest.raises(Refused, match="closer"):
        assign(schedule, CHIP, like=replace(schedule, crowded=-1))
