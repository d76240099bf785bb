"""A timeline as a Chrome trace, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

One process a core and one track a pipe; flags are arrows from the instruction that they follow to the one that waited, and bytes
live in each memory are counters. Times are microseconds from the start of the block, or of the first launch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tile_eg.ir.index import evaluate
from tile_eg.ir.machine import CORE_PIPES
from tile_eg.ir.program import AIC, AIV, Program
from tile_eg.timeline.cores import Handover, Span
from tile_eg.timeline.live import Life, program_lives, touched_lives
from tile_eg.timeline.replay.launches import RanLaunch
from tile_eg.timeline.result import Timeline

Event = dict[str, Any]
INSIDE = 0.01
SLACK = 1e-6
LAUNCHES = 1
CORES = ("AIC", "AIV", "AIV0", "AIV1")


def chrome_trace(program: Program, timeline: Timeline) -> Event:
    """The trace as plain data for `json.dump`. `timeline` is that of `program`; where it left trips out, so does the trace."""
    events = _Events(1 / timeline.clock_mhz)
    events.block(timeline.spans, timeline.handovers, program_lives(program, timeline.spans))
    about = {"program": timeline.program, "chip": timeline.chip, "blocks": timeline.blocks, "shortened": timeline.extrapolated}
    return events.trace(about)


def launches_trace(launches: Sequence[RanLaunch]) -> Event:
    """The trace of launches that ran one after the other: the slowest block of each, and a track of the launches themselves."""
    events = _Events(1 / launches[0].timeline.clock_mhz if launches else 1.0)
    for launch in launches:
        t = launch.timeline
        lives = touched_lives(t.spans, {instr: row.touched for instr, row in launch.rows.items()})
        events.launch(launch)
        events.offset = launch.start + t.launch_us
        events.block(t.spans, t.handovers, lives)
    return events.trace({"chip": launches[0].timeline.chip if launches else "", "launches": len(launches)})


def _pid(core: str) -> int:
    return CORES.index(core) + LAUNCHES + 1


def _track(core: str, pipe: str) -> Event:
    return {"pid": _pid(core), "tid": _pipes(core).index(pipe) + 1}


def _pipes(core: str) -> tuple[str, ...]:
    return CORE_PIPES[AIC if core == AIC else AIV]


@dataclass
class _Named:
    """Which processes and tracks have their names."""

    cores: set[str]
    pipes: set[tuple[str, str]]


class _Events:
    """Collects events. `us` is microseconds a cycle, `offset` the microseconds at which the block at hand starts."""

    def __init__(self, us: float) -> None:
        self.us, self.offset = us, 0.0
        self.names: list[Event] = []
        self.events: list[Event] = []
        self.named = _Named(set(), set())
        self.arrows = 0

    def trace(self, about: Event) -> Event:
        """All of it; what belongs to a track comes in the order of time."""
        events = sorted(self.events, key=lambda e: (e["ts"], "sfXC".index(e["ph"]) if e["ph"] != "X" else -1))
        return {"traceEvents": [*self.names, *events], "displayTimeUnit": "ns", "otherData": about}

    def block(self, spans: Sequence[Span], handovers: Sequence[Handover], lives: Sequence[Life]) -> None:
        """One block: its instructions, flags and memories."""
        for span in spans:
            self._name(span.core, span.pipe)
            self.events.append(self._slice(span))
        lanes = _Lanes(spans)
        for handover in handovers:
            self._arrow(handover, lanes)
        self._counters(lives)

    def launch(self, launch: RanLaunch) -> None:
        """A launch as a slice of its own."""
        if "launches" not in self.named.cores:
            self.named.cores.add("launches")
            self._meta("process_name", LAUNCHES, 0, "launches")
            self._meta("thread_name", LAUNCHES, 1, "host")
        t = launch.timeline
        args = {"blocks": t.blocks, "waves": t.waves, "bound": t.bound, "shown": f"block {launch.block}", "line": launch.line}
        time = {"ts": launch.start, "dur": t.microseconds}
        name = launch.kernel or "kernel"
        self.events.append({"ph": "X", "name": name, "cat": "launch", "pid": LAUNCHES, "tid": 1, **time, "args": args})

    def _meta(self, what: str, pid: int, tid: int, name: str) -> None:
        self.names.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}})

    def _name(self, core: str, pipe: str) -> None:
        """What a process and a track are called, when they first do something."""
        if core not in self.named.cores:
            self.named.cores.add(core)
            self._meta("process_name", _pid(core), 0, core)
        if (core, pipe) not in self.named.pipes:
            self.named.pipes.add((core, pipe))
            self._meta("thread_name", _pid(core), _track(core, pipe)["tid"], pipe)

    def _at(self, cycle: float) -> float:
        return self.offset + cycle * self.us

    def _slice(self, span: Span) -> Event:
        instr = span.instr
        sizes = {name: evaluate(e, span.env) for name, e in (("rows", instr.rows), ("cols", instr.cols), ("depth", instr.depth))}
        trips = {k: v for k, v in span.env.items() if k not in ("block", "sub")}
        args = sizes | {"trip": trips, "cycles": span.end - span.start, "done after": span.complete - span.start}
        if instr.span is not None:
            args["line"] = instr.span.line
        time = {"ts": self._at(span.start), "dur": (span.end - span.start) * self.us}
        return {"ph": "X", "name": instr.op, "cat": span.pipe, **_track(span.core, span.pipe), **time, "args": args}

    def _arrow(self, h: Handover, lanes: _Lanes) -> None:
        """An arrow has to begin and end within slices; a flag with no instruction before it or behind it has none."""
        source, target = lanes.before(h.source, h.set), lanes.after(h.target, h.taken)
        if source is None or target is None:
            return
        start = source.end - INSIDE * (source.end - source.start)
        end = target.start + INSIDE * (target.end - target.start)
        self.arrows += 1
        head = {"name": h.name, "cat": "flag", "id": self.arrows}
        self.events.append(head | {"ph": "s", "ts": self._at(start)} | _track(source.core, source.pipe))
        self.events.append(head | {"ph": "f", "bp": "e", "ts": self._at(end)} | _track(target.core, target.pipe))

    def _counters(self, lives: Sequence[Life]) -> None:
        changes = [(life.first, life.core, life.level, life.size) for life in lives]
        changes += [(life.last, life.core, life.level, -life.size) for life in lives]
        live: dict[tuple[str, str], int] = {}
        last: dict[tuple[str, str], Event] = {}
        for time, core, level, change in sorted(changes):
            key, ts = (core, level), self._at(time)
            live[key] = live.get(key, 0) + change
            if key not in last or last[key]["ts"] != ts:
                last[key] = {"ph": "C", "name": f"{level} live", "pid": _pid(core), "tid": 0, "ts": ts, "args": {}}
                self.events.append(last[key])
            last[key]["args"] = {"bytes": live[key]}


class _Lanes:
    """The spans of each pipe in order, to find the one before and the one after a time."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.by: dict[tuple[str, str], list[Span]] = {}
        for span in spans:
            self.by.setdefault((span.core, span.pipe), []).append(span)
        self.starts = {key: [s.start for s in lane] for key, lane in self.by.items()}
        self.ends = {key: list(accumulate((s.complete for s in lane), max)) for key, lane in self.by.items()}

    def before(self, key: tuple[str, str], time: float) -> Span | None:
        """The last one that was complete at `time`, and all before it."""
        at = bisect_right(self.ends.get(key, []), time + SLACK)
        return self.by[key][at - 1] if at else None

    def after(self, key: tuple[str, str], time: float) -> Span | None:
        """The first one that starts at `time` or later; on the scalar unit of a core, whatever that core starts next."""
        return min(self._ahead(key, time), key=lambda s: s.start, default=None)

    def _ahead(self, key: tuple[str, str], time: float) -> Iterator[Span]:
        lanes = [key] if key in self.by else [k for k in self.by if k[0] == key[0]] if key[1] == "S" else []
        for k in lanes:
            at = bisect_left(self.starts[k], time - SLACK)
            if at < len(self.by[k]):
                yield self.by[k][at]
