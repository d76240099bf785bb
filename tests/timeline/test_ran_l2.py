"""L2 and HBM under a text as it ran: which bytes of a trace cross HBM, and that no launch is quicker than HBM moves them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_eg.chips import Chip, load_chip
from tile_eg.simulator.findings import TraceRow
from tile_eg.timeline.replay.l2 import L2, Traffic, Turns
from tile_eg.timeline.replay.launches import RanLaunch, timed_launches

CHIP = load_chip("910B2")
PAGE = 4096
MEET = TraceRow(0, "AIV", "S", "SyncAll", 1, 0, sizes=(1, 0, 0, 0))


def copy(path: str, tensor: str, at: int, n: int = 1, length: int = PAGE, stride: int = 0, **more: Any) -> TraceRow:
    pipe = "MTE2" if path.startswith("GM") else "MTE3"
    sizes, row = (n, length, stride or length, 4), {"block": 0, "core": "AIV", "line": 7, **more}
    return TraceRow(pipe=pipe, name="DataCopy", bytes=n * length, path=path, tensor=tensor, offset=at, sizes=sizes, **row)


def load(tensor: str, at: int = 0, **more: Any) -> TraceRow:
    return copy("GM->UB", tensor, at, **more)


def store(tensor: str, at: int = 0, **more: Any) -> TraceRow:
    return copy("UB->GM", tensor, at, **more)


def traffic(*rows: TraceRow, pages: int = 1000, at_once: int = 48) -> Traffic:
    """One launch on an L2 that keeps so many pages, read or written."""
    return L2(rows, pages * PAGE, pages * PAGE).launch(rows, at_once)


def moved(*rows: TraceRow, **how: Any) -> tuple[float, float]:
    """HBM's pages read and written."""
    read, written = (sum(each) / PAGE for each in zip(*traffic(*rows, **how).hbm, strict=True))
    return read, written


def launch(*rows: TraceRow, blocks: int, chip: Chip = CHIP, kind: int = 1) -> RanLaunch:
    mark = TraceRow(0, "AIV", "S", "k", 1, 0, path="launch", sizes=(kind, blocks, 0, 0))
    return timed_launches([mark, *rows], chip)[0]


# ---- which bytes cross HBM --------------------------------------------------------------------------------------------------


def test_what_is_written_stays_in_l2_when_the_launch_ends() -> None:
    assert moved(load("x"), store("x")) == (1, 0)
    assert moved(*(store("x", at * PAGE) for at in range(8)), pages=8) == (0, 0)


def test_a_page_that_is_read_again_comes_out_of_l2() -> None:
    assert moved(load("x"), load("x")) == (1, 0)


def test_a_scan_that_l2_does_not_hold_comes_from_hbm_every_time() -> None:
    scan = [load("x", at * PAGE) for at in range(9)]
    assert moved(*scan, *scan, pages=8) == (18, 0)
    assert moved(*scan, *scan, pages=9) == (9, 0)


def test_what_is_used_again_and_again_stays_while_the_rest_is_dropped() -> None:
    rows = [row for at in range(20) for row in (load("hot"), load("stream", at * PAGE))]
    assert moved(*rows, pages=3) == (21, 0)


def test_tiles_of_different_shape_meet_where_their_bytes_do() -> None:
    whole, columns = load("x", n=4, length=1024), load("x", 256, n=4, length=512, stride=1024)
    assert moved(whole, columns) == (1, 0)
    assert moved(columns, whole) == (1, 0)


def test_rows_that_start_anywhere_are_told_apart() -> None:
    rows = [load("x", 2 * at, n=3, length=2, stride=10) for at in range(5)]
    assert moved(*rows, load("x", 0, length=30))[0] * PAGE == 30


def test_a_large_tensor_is_followed_in_coarser_grains_without_losing_a_byte() -> None:
    odd = [load("x", at * 4098, length=4098) for at in range(9)]
    far = load("x", 1 << 33, length=4098)
    assert moved(*odd, far)[0] == pytest.approx(10 * 4098 / PAGE)


def test_hbm_writes_what_other_lines_push_out() -> None:
    assert moved(*(store("x", at * PAGE) for at in range(8)), pages=6) == (0, 2)
    assert moved(store("x"), load("y"), load("y", PAGE), pages=2) == (2, 1)


def test_what_is_written_again_before_it_is_pushed_out_is_written_once() -> None:
    assert moved(store("x"), store("x"), load("y"), load("y", PAGE), pages=2) == (2, 1)


def test_what_is_pushed_out_between_two_writes_goes_to_hbm_each_time() -> None:
    again = load("y", 2 * PAGE), load("y", 3 * PAGE)
    assert moved(store("x"), load("y"), load("y", PAGE), store("x"), *again, pages=2) == (4, 2)


def test_what_one_launch_wrote_another_one_pushes_out() -> None:
    first, second = [store("x")], [load("y"), load("y", PAGE)]
    l2 = L2([*first, *second], 2 * PAGE, 2 * PAGE)
    assert l2.launch(first, 48).hbm == [(0, 0)]
    assert l2.launch(second, 48).hbm == [(2 * PAGE, PAGE)]


def test_what_was_written_is_found_longer_than_what_was_read() -> None:
    rows = [way("x", at * PAGE) for way in (store, load) for at in range(4)]
    assert L2(rows, 2 * PAGE, 4 * PAGE).launch(rows, 48).hbm == [(0, 0)]


def test_what_the_launch_reads_back_stays_in_l2() -> None:
    assert moved(store("scratch"), load("scratch")) == (0, 0)
    assert moved(store("scratch"), load("scratch"), store("scratch")) == (0, 0)


def test_scratch_that_does_not_fit_goes_to_hbm_and_back() -> None:
    out, back = ([way("scratch", at * PAGE) for at in range(4)] for way in (store, load))
    assert moved(*out, *back, pages=2) == (4, 4)


def test_the_next_launch_finds_what_was_written_and_not_what_was_read() -> None:
    first, second = [load("x"), store("y")], [load("x"), load("y")]
    l2 = L2([*first, *second], 100 * PAGE, 100 * PAGE)
    l2.launch(first, 48)
    assert l2.launch(second, 48).hbm == [(PAGE, 0)]


def test_blocks_go_in_step() -> None:
    """Two blocks that go through the same pages bring each once, though a trace has one block behind the other."""
    rows = [load("x", at * PAGE, block=block) for block in (0, 1) for at in range(9)]
    assert moved(*rows, pages=4) == (9, 0)
    assert moved(*rows, pages=4, at_once=1) == (18, 0)


def test_meetings_part_a_launch() -> None:
    rows = [load("x"), store("y"), MEET, load("z"), load("z", PAGE)]
    assert traffic(*rows).hbm == [(PAGE, 0), (2 * PAGE, 0)]
    assert traffic(*rows, pages=2).hbm == [(PAGE, PAGE), (2 * PAGE, 0)]


def test_cores_that_read_one_place_at_different_turns_do_not_share_it() -> None:
    staggered = [load("x", (block + at) % 4 * PAGE, block=block) for block in range(4) for at in range(4)]
    in_step = [load("x", at * PAGE, block=block) for block in range(4) for at in range(4)]
    assert not traffic(*staggered).sharing
    assert set(traffic(*in_step).sharing.values()) == {4}


def test_blocks_that_do_nothing_leave_the_others_more_of_the_memory_system() -> None:
    half = [load("x", (block * 4 + at) * PAGE, block=block) for block in range(4) for at in range(4 if block % 2 else 2)]
    assert at_work(half, at_once=4) == [4, 4, 2, 2]


def test_blocks_that_come_in_waves_leave_what_they_do_not_need_to_the_next_ones() -> None:
    half = [load("x", (block * 4 + at) * PAGE, block=block) for block in range(4) for at in range(4 if block % 2 else 2)]
    assert at_work(half, at_once=2) == [1.5] * 4


def at_work(rows: list[TraceRow], at_once: int) -> list[float]:
    """How many blocks copy at the time of each copy of block 1."""
    found, at, out = traffic(*rows, at_once=at_once), Turns(), []
    for row in rows:
        if row.block == 1:
            out.append(found.at_work(row, at))
            at.after(row)
    return out


# ---- what it takes ----------------------------------------------------------------------------------------------------------


def in_place(blocks: int, copies: int, target: str) -> list[TraceRow]:
    size = 32 * PAGE
    places = [(block, (block * copies + at) * size) for block in range(blocks) for at in range(copies)]
    return [way(t, at, length=size, block=b) for b, at in places for way, t in ((load, "x"), (store, target))]


def test_a_kernel_in_place_takes_what_it_takes_from_one_tensor_to_another() -> None:
    there, here = (launch(*in_place(48, 8, target), blocks=48).timeline for target in ("y", "x"))
    assert (here.hbm_cycles, here.cycles) == (there.hbm_cycles, there.cycles)
    assert here.bound == "HBM"


def test_a_text_whose_rows_start_off_the_lines_is_slower() -> None:
    straight, off = ([load("x", at * 64 * PAGE + shift, n=16, length=2048, stride=8192) for at in range(8)] for shift in (0, 32))
    assert launch(*off, blocks=1).timeline.cycles > 1.05 * launch(*straight, blocks=1).timeline.cycles


@pytest.mark.slow
def test_all_cores_of_a_mixed_block_meet() -> None:
    """What the vector cores do behind the meeting begins when the cube core has come to it."""
    meet = replace(MEET, sizes=(0, 0, 0, 0))
    cube = [*(copy("GM->L1", "a", at * PAGE, core="AIC") for at in range(200)), replace(meet, core="AIC")]
    vector = [row for core in ("AIV0", "AIV1") for row in (replace(meet, core=core), load("b", core=core))]
    timeline = launch(*cube, *vector, blocks=1, kind=3).timeline
    assert min(s.start for s in timeline.spans if s.core != "AIC") > max(s.complete for s in timeline.spans if s.core == "AIC")


@pytest.mark.slow
def test_a_meeting_of_the_vector_cores_waits_for_no_cube_core() -> None:
    cube = [copy("GM->L1", "a", at * PAGE, core="AIC") for at in range(200)]
    vector = [row for core in ("AIV0", "AIV1") for row in (replace(MEET, core=core), load("b", core=core))]
    timeline = launch(*cube, *vector, blocks=1, kind=3).timeline
    assert min(s.start for s in timeline.spans if s.core != "AIC") < max(s.complete for s in timeline.spans if s.core == "AIC")


@pytest.mark.slow
def test_hbm_holds_up_a_phase_by_itself() -> None:
    """A phase that asks for little cannot lend its time to one that asks for more than HBM gives."""
    much, little = in_place(48, 8, "y"), [load("z", block=block) for block in range(48) for _ in range(200)]
    meet = [replace(MEET, block=block) for block in range(48)]
    both = launch(*much, *meet, *little, blocks=48).timeline.cycles
    apart = [launch(*rows, blocks=48).timeline.cycles for rows in (much, little)]
    assert both >= 0.98 * sum(apart)


PART = 1 << 22  # bytes of a tensor for each block
Kind = tuple[str, str, int, int, int]
LENGTHS = st.sampled_from((32, 96, 2048, 16384))
COPIES = st.tuples(
    st.sampled_from(("GM->UB", "UB->GM")), st.sampled_from("xyz"), st.integers(0, 8), st.integers(1, 64), LENGTHS
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(COPIES, min_size=1, max_size=12), st.sampled_from((1, 48)), st.booleans())
def test_no_launch_is_quicker_than_hbm_moves_its_bytes(kinds: list[Kind], blocks: int, apart: bool) -> None:
    """Each block's copies in a part of each tensor that is its own (or all read one part, and write their own)."""
    rows = []
    for block in range(blocks):
        for path, tensor, at, n, length in kinds:
            own = block if apart or path == "UB->GM" else blocks
            rows.append(copy(path, tensor, own * PART + at * 8192, n, length, 2 * length, block=block))
    timeline = launch(*rows, blocks=blocks).timeline
    fastest = CHIP.shared.hbm_read / (CHIP.clock_mhz * 1e6)
    assert timeline.cycles >= 0.999 * must_cross(rows) / fastest


def must_cross(rows: list[TraceRow]) -> int:
    """Bytes that are read before the launch wrote them."""
    first: dict[str, dict[int, np.ndarray]] = defaultdict(dict)
    for row in rows:
        writes, (n, length, stride, _) = row.path.endswith("->GM"), row.sizes
        part, at = divmod(row.offset, PART)
        begin = first[row.tensor].setdefault(part, np.zeros(PART // 32, np.int8))
        where = (at // 32 + np.arange(n)[:, None] * (stride // 32) + np.arange(length // 32)).ravel()
        begin[where] = np.where(begin[where] == 0, 1 + writes, begin[where])
    return 32 * sum(int(np.count_nonzero(begin == 1)) for parts in first.values() for begin in parts.values())


@pytest.mark.slow
def test_a_core_that_lost_less_in_step_takes_what_is_left() -> None:
    rows = lambda blocks: [load("x", at=k * PAGE, block=b) for b in range(blocks) for k in range(64)]  # noqa: E731
    cores = CHIP.vector_cores
    one, half_more, twice = (launch(*rows(n), blocks=n).timeline.cycles for n in (cores, cores + cores // 2, 2 * cores))
    assert one < half_more < 0.95 * twice


def test_beside_what_l2_holds_a_load_has_more_of_hbm() -> None:
    size, cores = 16 * PAGE, range(CHIP.vector_cores)
    turn = lambda b, k: (load("a", b * size, length=size, block=b, line=1), load("b", (b * 32 + k) * size, length=size, block=b))  # noqa: E731
    took = launch(*[row for b in cores for k in range(32) for row in turn(b, k)], blocks=len(cores)).timeline
    assert took.hbm_cycles <= took.cycles < 1.1 * took.hbm_cycles


@pytest.mark.slow
def test_what_blocks_wait_for_one_another_is_in_the_interval_too() -> None:
    many = lambda b, n: [load("x", at=(b * 500 + k) * PAGE, block=b) for k in range(n)]  # noqa: E731
    late, early = [*many(0, 400), MEET], [*many(1, 1), replace(MEET, block=1), *many(1, 300)]
    took = launch(*late, *early, blocks=2)
    assert took.range_us is not None and 0.95 * took.timeline.microseconds < took.range_us[0]


@pytest.mark.long
def test_what_the_first_core_loses_in_step_is_in_the_interval_of_a_text() -> None:
    cores = CHIP.vector_cores
    rows = [load("x", at=k * PAGE, block=b) for b in range(cores + cores // 2) for k in range(64)]
    nothing, all_of_it = (
        launch(*rows, blocks=cores + cores // 2, chip=replace(CHIP, shared=replace(CHIP.shared, first_lost=lost))).timeline
        for lost in (0.0, 1.0)
    )
    low, high = launch(*rows, blocks=cores + cores // 2).range_us or (0.0, 0.0)
    assert nothing.cycles < 0.95 * all_of_it.cycles
    assert low <= nothing.microseconds and high >= all_of_it.microseconds
