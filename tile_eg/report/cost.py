"""How long a program is predicted to take, and what it does meanwhile: busy pipes, bytes by path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from tile_eg.ir.printed import Printed
from tile_eg.report.html import Bar, html_table, paragraphs
from tile_eg.report.text import duration, share, size, table

if TYPE_CHECKING:
    from tile_eg.timeline.result import Timeline


@dataclass(frozen=True, repr=False)
class Cost(Printed):
    """A timeline as its readers ask for it. Prints as a line and two tables.

    `handover` is the predicted time in microseconds with the shortest and the longest latency between cores that is taken to be
    possible; None for a program in which no core waits for another.
    """

    timeline: Timeline
    handover: tuple[float, float] | None = None

    @property
    def microseconds(self) -> float:
        """Of the whole launch."""
        return self.timeline.microseconds

    def __str__(self) -> str:
        return "\n".join([self.headline(), "", self.pipes(), "", self.paths()])

    def _repr_html_(self) -> str:
        """The line, and how much of a block's time each pipe is busy, as bars."""
        t = self.timeline
        parts = [(*key, busy, Bar(busy / (t.block_cycles or 1), share(busy, t.block_cycles))) for key, busy in self._busy()]
        rows = [(core, pipe, f"{busy:.0f}", bar) for core, pipe, busy, bar in parts]
        moved = [(path.replace("->", " -> "), size(round(count))) for path, count in t.bytes.items()]
        pipes = html_table(rows, ("core", "pipe", "cycles busy", "of a block"), right=(2, 3))
        return paragraphs(escape(self.headline()), pipes, html_table(moved, ("path", "bytes"), right=(1,)))

    def headline(self) -> str:
        """One line: the time, what it consists of, and what bounds it."""
        t = self.timeline
        waves = f" in {t.waves} waves" if t.waves > 1 else ""
        blocks = f"{t.blocks} block{'s' * (t.blocks > 1)}{waves}"
        launch = f"{duration(t.launch_us * 1e-6)} of it launch"
        return f"predicted {duration(t.microseconds * 1e-6)}{self._range()} on {t.chip} ({launch}; {blocks}; bound by {t.bound})"

    def _range(self) -> str:
        """The latency between cores is not published: what that leaves open."""
        if self.handover is None:
            return ""
        low, high = (duration(us * 1e-6) for us in self.handover)
        return f" ({low} to {high} by the latency between cores, which is not published)"

    def pipes(self) -> str:
        """How long each pipe of one block is busy."""
        t = self.timeline
        rows = [(core, pipe, f"{busy:.0f}", share(busy, t.block_cycles)) for (core, pipe), busy in self._busy()]
        return table(rows, ("core", "pipe", "cycles busy", "of a block"), right=(2, 3))

    def paths(self) -> str:
        """What the whole launch moves along each path."""
        rows = [(path.replace("->", " -> "), size(round(count))) for path, count in self.timeline.bytes.items()]
        return table(rows, ("path", "bytes"), right=(1,))

    def data(self) -> dict[str, Any]:
        """The same as plain values: microseconds, cycles by pipe, bytes by path."""
        t = self.timeline
        return {
            "microseconds": t.microseconds,
            "microseconds_range": list(self.handover) if self.handover else None,
            "launch_microseconds": t.launch_us,
            "blocks": t.blocks,
            "waves": t.waves,
            "bound": t.bound,
            "block_cycles": t.block_cycles,
            "busy_cycles": {f"{core}.{pipe}": busy for (core, pipe), busy in self._busy()},
            "bytes": dict(t.bytes),
        }

    def _busy(self) -> Iterator[tuple[tuple[str, str], float]]:
        return ((key, busy) for key, busy in self.timeline.busy.items() if busy)
