"""The Chrome trace of a timeline: what Perfetto needs to draw it."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest
from timeline_programs import fused_program, gemm_program, stream_loop, vector_program

from tile_eg.chips import load_chip
from tile_eg.ir.program import Program
from tile_eg.simulator.findings import TraceRow
from tile_eg.timeline.engine import run
from tile_eg.timeline.replay.launches import timed_launches
from tile_eg.timeline.trace import chrome_trace, launches_trace

CHIP = load_chip()
PROGRAMS = {"vector": vector_program(*stream_loop(6, 2)), "gemm": gemm_program(6, 2), "fused": fused_program(4, skewed=True)}


def trace(program: Program) -> dict[str, Any]:
    return chrome_trace(program, run(program, CHIP))


def ran() -> dict[str, Any]:
    """Two launches of a vector core that loads, computes and stores, as the simulator's trace has them."""

    def row(name: str, pipe: str, path: str, sizes: tuple[int, int, int, int], *touched: tuple[str, int, int, int]) -> TraceRow:
        return TraceRow(0, "AIV", pipe, name, 7, 4096, path, "x", 0, sizes, touched)

    no = (0, 0, 0, 0)
    body = [
        row("DataCopy", "MTE2", "GM->UB", (1, 4096, 4096, 4), ("UB", 0, 4096, 1)),
        row("SetFlag MTE2_V, 0", "MTE2", "", no),
        row("WaitFlag MTE2_V, 0", "V", "", no),
        row("Exp", "V", "vector", (256, 4, 0, 0), ("UB", 0, 4096, 0), ("UB", 4096, 8192, 1)),
        row("SetFlag V_MTE3, 0", "V", "", no),
        row("WaitFlag V_MTE3, 0", "MTE3", "", no),
        row("DataCopy", "MTE3", "UB->GM", (1, 4096, 4096, 4), ("UB", 4096, 8192, 0)),
    ]
    rows = [r for name in ("first", "second") for r in (row(name, "S", "launch", (1, 1, 0, 0)), *body)]
    return launches_trace(timed_launches(rows, CHIP))


TRACES = {**{name: lambda name=name: trace(PROGRAMS[name]) for name in PROGRAMS}, "ran": ran}


def events(name: str, kind: str) -> list[dict[str, Any]]:
    return [e for e in TRACES[name]()["traceEvents"] if e["ph"] == kind]


# ---- the Trace Event Format -------------------------------------------------------------------------------------------------

NUMBER = (int, float)
COMMON = {"ph": str, "name": str, "pid": int, "tid": int}
FIELDS: dict[str, dict[str, Any]] = {
    "M": {**COMMON, "args": dict},
    "X": {**COMMON, "cat": str, "ts": NUMBER, "dur": NUMBER, "args": dict},
    "C": {**COMMON, "ts": NUMBER, "args": dict},
    "s": {**COMMON, "cat": str, "ts": NUMBER, "id": int},
    "f": {**COMMON, "cat": str, "ts": NUMBER, "id": int, "bp": str},
}


@pytest.mark.parametrize("name", TRACES)
def test_every_event_has_the_fields_of_its_phase_and_no_other(name: str) -> None:
    for e in json.loads(json.dumps(TRACES[name]()))["traceEvents"]:
        fields = FIELDS[e["ph"]]
        assert e.keys() == fields.keys(), e
        assert all(isinstance(e[key], kind) and not isinstance(e[key], bool) for key, kind in fields.items()), e
        assert e.get("ts", 0) >= 0 and e.get("dur", 0) >= 0, e


@pytest.mark.parametrize("name", TRACES)
def test_names_of_processes_and_tracks_are_strings_and_counters_numbers(name: str) -> None:
    assert {e["name"] for e in events(name, "M")} == {"process_name", "thread_name"}
    assert all(list(e["args"]) == ["name"] and isinstance(e["args"]["name"], str) for e in events(name, "M"))
    assert all(isinstance(value, NUMBER) for e in events(name, "C") for value in e["args"].values())


@pytest.mark.parametrize("name", TRACES)
def test_every_process_and_track_that_holds_a_slice_has_a_name_once(name: str) -> None:
    named = [(e["name"], e["pid"], e["tid"] if e["name"] == "thread_name" else 0) for e in events(name, "M")]
    assert len(named) == len(set(named))
    for e in events(name, "X"):
        assert ("thread_name", e["pid"], e["tid"]) in named
        assert ("process_name", e["pid"], 0) in named


@pytest.mark.parametrize("name", TRACES)
def test_every_arrow_has_one_start_and_one_end_of_its_name_bound_to_enclosing_slices(name: str) -> None:
    starts, ends = ({e["id"]: e for e in events(name, kind)} for kind in "sf")
    assert len(starts) == len(events(name, "s"))
    assert starts.keys() == ends.keys()
    assert all((e["name"], e["cat"]) == (ends[i]["name"], ends[i]["cat"]) for i, e in starts.items())
    assert all(e["bp"] == "e" for e in ends.values())


@pytest.mark.parametrize("name", TRACES)
def test_events_come_in_the_order_of_time_with_a_slice_before_the_arrows_in_it(name: str) -> None:
    times = [e["ts"] for e in TRACES[name]()["traceEvents"] if "ts" in e]
    assert times == sorted(times)


def test_launches_have_a_track_of_their_own_and_instructions_lie_within_them() -> None:
    first, second, *_ = slices = [e for e in events("ran", "X") if e["cat"] == "launch"]
    assert [e["name"] for e in slices] == ["first", "second"]
    assert second["ts"] == first["dur"]
    inside = [e for e in events("ran", "X") if e["cat"] != "launch"]
    assert all(any(a["ts"] <= e["ts"] and e["ts"] + e["dur"] <= a["ts"] + a["dur"] + 1e-9 for a in slices) for e in inside)


def test_bytes_that_ran_are_live_from_their_load_to_their_last_use() -> None:
    levels = [e["args"]["bytes"] for e in events("ran", "C")]
    assert max(levels) == 8192
    assert levels[0] == 4096 and levels[-1] == 0


# ---- what it shows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_instruction_is_a_slice(name: str) -> None:
    assert len(events(name, "X")) == len(run(PROGRAMS[name], CHIP).spans)


@pytest.mark.parametrize("name", TRACES)
def test_slices_of_a_track_do_not_overlap(name: str) -> None:
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for e in events(name, "X"):
        tracks[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    for slices in tracks.values():
        ordered = sorted(slices)
        assert all(a[1] <= b[0] + 1e-9 for a, b in zip(ordered, ordered[1:], strict=False))


def test_each_pipe_that_works_is_a_track_with_its_name() -> None:
    names = {e["args"]["name"] for e in events("fused", "M") if e["name"] == "thread_name"}
    assert names == {"MTE2", "V", "MTE3", "M", "FIX"}


@pytest.mark.parametrize("name", TRACES)
def test_every_arrow_begins_and_ends_within_a_slice(name: str) -> None:
    slices = [(e["pid"], e["tid"], e["ts"], e["ts"] + e["dur"]) for e in events(name, "X")]
    for e in events(name, "s") + events(name, "f"):
        assert any((pid, tid) == (e["pid"], e["tid"]) and a <= e["ts"] <= b for pid, tid, a, b in slices), e


@pytest.mark.parametrize("name", TRACES)
def test_no_arrow_goes_back_in_time(name: str) -> None:
    starts = {e["id"]: e["ts"] for e in events(name, "s")}
    assert starts
    assert all(starts[e["id"]] <= e["ts"] + 1e-3 for e in events(name, "f"))


def test_a_flag_between_cores_is_an_arrow_between_processes() -> None:
    starts = {e["id"]: e["pid"] for e in events("fused", "s")}
    assert any(starts[e["id"]] != e["pid"] for e in events("fused", "f"))


@pytest.mark.parametrize("name", TRACES)
def test_bytes_live_begin_and_end_at_nothing(name: str) -> None:
    last: dict[tuple[int, str], int] = {}
    for e in events(name, "C"):
        last[e["pid"], e["name"]] = e["args"]["bytes"]
        assert e["args"]["bytes"] >= 0
    assert last
    assert set(last.values()) == {0}


def test_a_ring_of_two_holds_more_than_one_slot_and_no_more_than_two() -> None:
    slot = (128 * 64 + 64 * 256) * 2
    assert slot < max(e["args"]["bytes"] for e in events("gemm", "C") if e["name"] == "L1 live") <= 2 * slot
