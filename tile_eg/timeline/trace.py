"""A timeline as a Chrome trace, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

One process a core and one track a pipe; flags are arrows from the instruction that they follow to the one that waited, and bytes
live in each memory are counters. Times are microseconds from the start of the block.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from tile_eg.ir.index import evaluate
from tile_eg.ir.machine import CORE_PIPES
from tile_eg.ir.program import Buffer, Program, Tile
from tile_eg.ir.types import Level
from tile_eg.timeline.cores import Handover, Span
from tile_eg.timeline.engine import Timeline

Event = dict[str, Any]
INSIDE = 0.01
SLACK = 1e-6


def chrome_trace(program: Program, timeline: Timeline) -> Event:
    """The trace as plain data for `json.dump`. `timeline` is that of `program`; where it left trips out, so does the trace."""
    us = 1 / timeline.clock_mhz
    lanes = _Lanes(timeline.spans)
    events = [*_names(timeline), *(_slice(s, us) for s in timeline.spans)]
    events += [e for i, h in enumerate(timeline.handovers) for e in _arrow(i, h, lanes, us)]
    events += _counters(program, timeline.spans, us)
    about = {"program": timeline.program, "chip": timeline.chip, "blocks": timeline.blocks, "shortened": timeline.extrapolated}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}


_CORE_IDS = {core: i + 1 for i, core in enumerate(CORE_PIPES)}


def _names(timeline: Timeline) -> Iterator[Event]:
    """What the processes and tracks are called, of those that did something."""
    used = {(s.core, s.pipe) for s in timeline.spans}
    for core, pipes in CORE_PIPES.items():
        if any(c == core for c, _ in used):
            yield {"ph": "M", "name": "process_name", "pid": _CORE_IDS[core], "args": {"name": core}}
        for i, pipe in enumerate(pipes):
            if (core, pipe) in used:
                yield {"ph": "M", "name": "thread_name", "pid": _CORE_IDS[core], "tid": i + 1, "args": {"name": pipe}}


def _track(core: str, pipe: str) -> Event:
    return {"pid": _CORE_IDS[core], "tid": CORE_PIPES[core].index(pipe) + 1}


def _slice(span: Span, us: float) -> Event:
    instr = span.instr
    sizes = {name: evaluate(e, span.env) for name, e in (("rows", instr.rows), ("cols", instr.cols), ("depth", instr.depth))}
    trips = {k: v for k, v in span.env.items() if k not in ("block", "sub")}
    args = sizes | {"trip": trips, "cycles": span.end - span.start, "done after": span.complete - span.start}
    if instr.span is not None:
        args["line"] = instr.span.line
    time = {"ts": span.start * us, "dur": (span.end - span.start) * us}
    return {"ph": "X", "name": instr.op, "cat": span.pipe, **_track(span.core, span.pipe), **time, "args": args}


class _Lanes:
    """The spans of each pipe in order, to find the one before and the one after a time."""

    def __init__(self, spans: tuple[Span, ...]) -> None:
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
        lanes = [key] if key in self.by else [k for k in self.by if k[0] == key[0]] if key[1] == "S" else []
        ahead = [(self.starts[k], self.by[k]) for k in lanes]
        found = [lane[at] for starts, lane in ahead if (at := bisect_left(starts, time - SLACK)) < len(lane)]
        return min(found, key=lambda s: s.start, default=None)


def _arrow(number: int, h: Handover, lanes: _Lanes, us: float) -> list[Event]:
    """An arrow has to begin and end within slices; a flag with no instruction before it or behind it has none."""
    source, target = lanes.before(h.source, h.set), lanes.after(h.target, h.taken)
    if source is None or target is None:
        return []
    start = source.end - INSIDE * (source.end - source.start)
    end = target.start + INSIDE * (target.end - target.start)
    head = {"name": h.name, "cat": "flag", "id": number}
    return [
        head | {"ph": "s", "ts": start * us} | _track(source.core, source.pipe),
        head | {"ph": "f", "bp": "e", "ts": end * us} | _track(target.core, target.pipe),
    ]


# ---- bytes live -------------------------------------------------------------------------------------------------------------


def _counters(program: Program, spans: tuple[Span, ...], us: float) -> list[Event]:
    """A slot is live from the start of what fills it to the end of what reads it last before it is filled again."""
    buffers = {b.name: b for b in program.buffers}
    changes: list[tuple[float, str, str, int]] = []
    for (core, buffer), (first, last) in _lives(buffers, spans):
        level, size = buffer.level.value, buffer.slot_bytes
        changes += [(first, core, level, size), (last, core, level, -size)]
    live: dict[tuple[str, str], int] = {}
    events = []
    for time, core, level, change in sorted(changes):
        live[core, level] = live.get((core, level), 0) + change
        counter = {"ph": "C", "name": f"{level} live", "pid": _CORE_IDS[core], "ts": time * us}
        events.append(counter | {"args": {"bytes": live[core, level]}})
    return events


def _lives(buffers: dict[str, Buffer], spans: tuple[Span, ...]) -> Iterator[tuple[tuple[str, Buffer], tuple[float, float]]]:
    """((core, buffer), (first, last) cycle) of each filling of each slot of an on-chip buffer.

    A write that starts before the last use has ended joins the filling: several instructions fill one slot.
    """
    open_: dict[tuple[str, str, int], list[float]] = {}
    for span in sorted(spans, key=lambda s: s.start):
        reads = {_place(span, t) for t in span.instr.reads() if isinstance(t, Tile)}
        writes = {_place(span, t) for t in span.instr.writes() if isinstance(t, Tile)}
        for place in sorted(p for p in reads | writes if buffers[p[1]].level is not Level.WS):
            if place in open_ and (place in reads or span.start <= open_[place][1]):
                open_[place][1] = max(open_[place][1], span.complete)
                continue
            if place in open_:
                yield (place[0], buffers[place[1]]), (open_[place][0], open_[place][1])
            open_[place] = [span.start, span.complete]
    for place, (first, last) in open_.items():
        yield (place[0], buffers[place[1]]), (first, last)


def _place(span: Span, tile: Tile) -> tuple[str, str, int]:
    return span.core, tile.buffer, evaluate(tile.slot, span.env)
