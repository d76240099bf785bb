"""What the simulation of a hand-written file says: outputs, findings at their lines, what moved, and when."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tile_eg.errors import Span, TileError
from tile_eg.ops.records import record
from tile_eg.report.cost import Cost
from tile_eg.report.text import indent
from tile_eg.simulator.findings import Finding, Simulation
from tile_eg.timeline.replay.launches import RanLaunch
from tile_eg.timeline.trace import launches_trace


class Compared(Protocol):
    """An output against what it should be."""

    @property
    def name(self) -> str: ...
    @property
    def good(self) -> bool: ...
    @property
    def words(self) -> str: ...
    def data(self) -> dict[str, Any]: ...


@record
class SimulatedReport:
    """The views of the runs of a file, as text and as plain data for JSON.

    `comparisons` are those of each set of inputs, by its name, which is empty where there is one run on what the spec gives.
    `launches` say when everything happened; where that is not known, `untimed` says why.
    """

    file: str
    source: str
    done: Simulation
    names: Sequence[str]
    comparisons: Mapping[str, Sequence[Compared]]
    launches: Sequence[RanLaunch] = ()
    untimed: str = ""

    @property
    def good(self) -> bool:
        return self.done.ok and not self.done.returned and all(c.good for _, c in self._comparisons())

    @property
    def not_compared(self) -> list[str]:
        """The outputs of which nothing says what they should be."""
        compared = {c.name for _, c in self._comparisons()}
        return [name for name in self.names if name not in compared]

    def _comparisons(self) -> list[tuple[str, Compared]]:
        return [(inputs, c) for inputs, compared in self.comparisons.items() for c in compared]

    def __str__(self) -> str:
        parts = [self.done.printed.rstrip(), *map(self._output, self.names, self.done.outputs)]
        parts += [_compared(inputs, c) for inputs, c in self._comparisons()]
        parts += [self._finding(f) for f in self.done.findings]
        parts += [_table("instructions", self.done.counts.instructions, ""), _table("moved", self.done.counts.bytes, " B")]
        parts += [_launch_text(launch) for launch in self.launches]
        parts += [f"no times: {self.untimed}"] if self.untimed else []
        if self.done.returned:
            parts.append(f"main returned {self.done.returned}")
        found = len(self.done.findings)
        nothing = f"; compared with nothing: {', '.join(self.not_compared)}" if self.not_compared else ""
        parts.append(f"{self.file}: {'good' if self.good else 'BAD'}, {found} finding{'s' * (found != 1)}{nothing}")
        return "\n".join(p for p in parts if p)

    def _output(self, name: str, array: np.ndarray) -> str:
        return f"{name}: {_summary(array)}"

    def _finding(self, finding: Finding) -> str:
        where = f" ({finding.core}, block {finding.block})" if finding.core else ""
        span = self._span(finding.line, finding.file)
        notes = [("the other instruction", self._span(finding.other_line, finding.other_file))] if finding.other_line else []
        notes += [(f"{name} is included here", at) for name in _headers(finding) if (at := self._include(name))]
        shown = TileError(f"{finding.kind}: {finding.message}{where}", span, notes=tuple(notes))
        shown.source, shown.texts = self.source, {self._path(name): text for name, text in self.done.files.items()}
        return shown.render()

    def _path(self, name: str) -> str:
        return self.done.paths.get(name, str(Path(self.file).parent / name)) if name else self.file

    def _span(self, line: int, name: str = "") -> Span | None:
        """The whole line of the file, or of one that it includes."""
        lines = self.done.files.get(name, "" if name else self.source).splitlines()
        if not 0 < line <= len(lines):
            return Span(name, line, 1, line, 2) if name else None
        text = lines[line - 1]
        start = len(text) - len(text.lstrip()) + 1
        return Span(self._path(name), line, start, line, max(start + 1, len(text.rstrip()) + 1))

    def _include(self, name: str) -> Span | None:
        lines = self.source.splitlines()
        return next(
            (self._span(i) for i, text in enumerate(lines, 1) if re.match(rf'\s*#\s*include\s*"{re.escape(name)}"', text)), None
        )

    def data(self) -> dict[str, Any]:
        outputs = [{"name": n, **_numbers(a)} for n, a in zip(self.names, self.done.outputs, strict=True)]
        return {
            "good": self.good,
            "outputs": outputs,
            "comparisons": [{"inputs": inputs, **c.data()} for inputs, c in self._comparisons()],
            "not_compared": self.not_compared,
            "findings": [asdict(f) for f in self.done.findings],
            "instructions": self.done.counts.instructions,
            "bytes": self.done.counts.bytes,
            "launches": [_launch_data(launch) for launch in self.launches],
            "untimed": self.untimed,
            "printed": self.done.printed,
            "returned": self.done.returned,
        }

    def trace(self) -> dict[str, Any]:
        """A Chrome trace of the launches: one track for each pipe and core, flags as arrows, bytes live as counters."""
        return launches_trace(self.launches)


def _headers(finding: Finding) -> list[str]:
    return [name for name in dict.fromkeys((finding.file, finding.other_file)) if name]


def _launch_text(launch: RanLaunch) -> str:
    cost = Cost(launch.timeline, launch.range_us)
    name = launch.kernel or "kernel"
    head = f"{name}: {cost.headline()}"
    unknown = [
        f"  {name}, line {_lines(lines)}: not in the chip's tables, counted as {what}" for name, what, lines in _unknown(launch)
    ]
    return "\n".join(["", head, indent(cost.pipes()), *unknown])


def _unknown(launch: RanLaunch) -> list[tuple[str, str, Sequence[int]]]:
    return [(name, what, lines) for name, (what, lines) in sorted(launch.unknown.items())]


def _lines(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines))


def _launch_data(launch: RanLaunch) -> dict[str, Any]:
    us = 1 / launch.timeline.clock_mhz
    spans = [
        {"core": s.core, "pipe": s.pipe, "name": s.instr.op, "line": launch.rows[id(s.instr)].line, "start_us": s.start * us,
         "us": (s.end - s.start) * us, "complete_us": s.complete * us}
        for s in launch.timeline.spans
    ]  # fmt: skip
    return {
        "kernel": launch.kernel,
        "line": launch.line,
        "start_microseconds": launch.start,
        **Cost(launch.timeline, launch.range_us).data(),
        "not_in_tables": [{"name": name, "counted_as": what, "lines": list(lines)} for name, what, lines in _unknown(launch)],
        "block": launch.block,
        "timeline": spans,
    }


def _numbers(array: np.ndarray) -> dict[str, Any]:
    values = array.astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high, mean = (float(f(finite)) if finite.size else None for f in (np.min, np.max, np.mean))
    return {"dtype": str(array.dtype), "shape": list(array.shape), "min": low, "max": high, "mean": mean,
            "not_finite": int(values.size - finite.size)}  # fmt: skip


def _summary(array: np.ndarray) -> str:
    n = _numbers(array)
    text = f"{n['dtype']}{n['shape']}"
    if n["min"] is not None:
        text += f", min {n['min']:.6g}, max {n['max']:.6g}, mean {n['mean']:.6g}"
    return text + (f", {n['not_finite']} not finite" if n["not_finite"] else "")


def _compared(inputs: str, c: Compared) -> str:
    return f"{c.name}{f', {inputs} inputs' if inputs else ''}: {'good' if c.good else 'BAD'}, {c.words}"


def _table(title: str, counts: dict[str, int], unit: str) -> str:
    return f"{title}: " + ", ".join(f"{name} {count}{unit}" for name, count in counts.items()) if counts else ""
