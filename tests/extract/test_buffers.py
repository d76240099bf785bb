"""How many buffers a tile has: a decision for each, priced by what it hides, with the room and the flags of all of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.extract.kernels import CHIP, graph_of, pricer
from tile_eg.chips import Chip
from tile_eg.egraph import Graph
from tile_eg.extract.buffers import Buffer, busy, pause, uncovered
from tile_eg.extract.exact import Exact
from tile_eg.extract.flags import missing, shrink
from tile_eg.extract.forced import Forced
from tile_eg.extract.schedule import Schedule
from tile_eg.ops.types import Level
from tile_eg.report.decisions import decisions_text

EXAMPLES = Path(__file__).parents[2] / "examples"
LOAD = "AIC.MTE2"


@cache
def graph(name: str, **sizes: int) -> Graph:
    return graph_of((EXAMPLES / f"{name}.tile").read_text("utf-8"), **sizes)


def best(name: str, **sizes: int) -> Schedule:
    found = graph(name, **sizes)
    return Exact().extract(found, CHIP, pricer(found), 1).best


def slots(schedule: Schedule, level: Level) -> dict[str, int]:
    return {s.name: s.slots for s in schedule.storages.values() if s.level is level}


@pytest.mark.slow
def test_where_l1_is_short_one_tile_has_two_buffers_beside_one_of_another() -> None:
    """Tiles of 96 and 192 KiB: two of each, as one depth for all had it, are more than L1."""
    assert slots(best("gemm", M=2048, N=2048, K=2048, BK=384), Level.L1) == {"a": 1, "b": 2}


@pytest.mark.slow
def test_what_is_stored_in_a_loop_has_two_buffers_where_there_is_room() -> None:
    schedule = best("online_softmax")
    stored = next(s.srcs[-1] for s, around in schedule.walk() if around and s.node.op == "UBToGM")
    assert schedule.storages[stored].slots == 2  # type: ignore[index]


def test_the_choice_says_what_each_storage_has() -> None:
    schedule = best("gemm", M=2048, N=2048, K=2048, BK=384)
    decided = {d.payload[-1] for s in schedule.storages.values() for d in s.decisions}
    assert decided == {1, 2} and all(d in schedule.nodes for s in schedule.storages.values() for d in s.decisions)


@pytest.mark.slow
def test_explain_has_a_row_for_each_tile() -> None:
    rows = [line for line in decisions_text(best("gemm")).splitlines() if "buffers of" in line]
    assert {row.split("  ")[0] for row in rows} == {"buffers of a in L1", "buffers of b in L1"}


def test_less_buffers_than_decided_are_another_decision() -> None:
    schedule = best("gemm")
    held = next(s for s in schedule.storages.values() if s.decisions)
    before = held.decisions[0]
    shrink(schedule, held)
    assert before not in schedule.nodes and held.decisions[0] in schedule.nodes
    assert held.decisions[0].payload[-1] == before.payload[-1] - 1


@pytest.mark.slow
def test_a_depth_that_was_asked_for_is_had_or_refused() -> None:
    found = graph("gemm", M=2048, N=2048, K=2048, BK=384)
    forced = Forced(found, CHIP, pricer(found))
    loaded = {n.children[-1] for n in found.nodes if n.op == "GmToL1" and found.demands[n.cls].tile.cols == 256 and n.region}
    deepest = [n for n in found.nodes if n.op == "Buffers" and n.cls in loaded and n.payload[-1] == 3]
    answer = forced.one_of(deepest)
    assert answer.schedule is None and answer.overflow and answer.overflow.level == Level.L1


def test_what_misses_a_buffer_least_gives_it_up() -> None:
    schedule = best("gemm")
    found = missing(schedule)
    assert len(found) == 2 and all(cycles >= 0 for cycles in found.values())


def test_with_one_buffer_the_other_pipes_of_the_core_wait_for_the_move() -> None:
    pipes = {LOAD: 500, "AIC.M": 700, "AIV.V": 900}
    assert busy(pipes, [Buffer(1, LOAD, 300), Buffer(2, LOAD, 200)]) == {LOAD: 500, "AIC.M": 1000, "AIV.V": 900}


@pytest.mark.parametrize("chip", [CHIP, replace(CHIP, sync=replace(CHIP.sync, refill=(70, 30, 20)))], ids=["its own", "another"])
def test_a_handover_a_trip_stays_as_the_chip_says(chip: Chip) -> None:
    refill = chip.sync.refill
    for depth, cycles in enumerate(refill, 1):
        assert uncovered({LOAD: 500}, [Buffer(depth, LOAD, 300, refill=refill), Buffer(3, LOAD, 200, refill=refill)]) == cycles


def test_a_tile_that_is_stored_needs_no_third_buffer() -> None:
    refill = CHIP.sync.refill
    assert Buffer(2, "AIV.MTE3", 300, out=True, refill=refill).handover == Buffer(3, "AIV.MTE3", 300, refill=refill).handover


def test_a_load_for_several_trips_is_bridged_by_deeper_buffers() -> None:
    long = Buffer(2, LOAD, 500, trips=4)
    assert [pause(long, Buffer(depth, LOAD, 500)) for depth in (1, 2, 3)] == [500, 250, 0]
