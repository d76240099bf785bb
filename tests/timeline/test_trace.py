"""The Chrome trace of a timeline: what Perfetto needs to draw it."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest
from timeline_programs import fused_program, gemm_program, stream_loop, vector_program

from tile_eg.chips import load_chip
from tile_eg.ir.program import Program
from tile_eg.timeline.engine import run
from tile_eg.timeline.trace import chrome_trace

CHIP = load_chip()
PROGRAMS = {"vector": vector_program(*stream_loop(6, 2)), "gemm": gemm_program(6, 2), "fused": fused_program(4, skewed=True)}


def trace(program: Program) -> dict[str, Any]:
    return chrome_trace(program, run(program, CHIP))


def events(name: str, kind: str) -> list[dict[str, Any]]:
    return [e for e in trace(PROGRAMS[name])["traceEvents"] if e["ph"] == kind]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_trace_is_json(name: str) -> None:
    assert json.loads(json.dumps(trace(PROGRAMS[name])))["traceEvents"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_instruction_is_a_slice(name: str) -> None:
    assert len(events(name, "X")) == len(run(PROGRAMS[name], CHIP).spans)


@pytest.mark.parametrize("name", PROGRAMS)
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


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_arrow_begins_and_ends_within_a_slice(name: str) -> None:
    slices = [(e["pid"], e["tid"], e["ts"], e["ts"] + e["dur"]) for e in events(name, "X")]
    for e in events(name, "s") + events(name, "f"):
        assert any((pid, tid) == (e["pid"], e["tid"]) and a <= e["ts"] <= b for pid, tid, a, b in slices), e


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_arrow_goes_back_in_time(name: str) -> None:
    starts = {e["id"]: e["ts"] for e in events(name, "s")}
    assert starts
    assert all(starts[e["id"]] <= e["ts"] + 1e-3 for e in events(name, "f"))


def test_a_flag_between_cores_is_an_arrow_between_processes() -> None:
    starts = {e["id"]: e["pid"] for e in events("fused", "s")}
    assert any(starts[e["id"]] != e["pid"] for e in events("fused", "f"))


@pytest.mark.parametrize("name", PROGRAMS)
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
