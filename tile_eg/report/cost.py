"""How long a program is predicted to take, and what it does meanwhile: busy pipes, bytes by path."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from tile_eg.ir.printed import Printed
from tile_eg.ops.records import record
from tile_eg.report.html import Bar, html_table, paragraphs
from tile_eg.report.text import duration, share, size, table

if TYPE_CHECKING:
    from tile_eg.timeline.result import Timeline


def between(microseconds: float, interval: tuple[float, float] | None) -> str:
    """A predicted time, and between what times it lies by what is assumed of the chip: "7.8 us, 7.1 to 8.6"."""
    time = duration(microseconds * 1e-6)
    if interval is None or within(interval) == "-":
        return time
    units = {duration(us * 1e-6).split(" ")[1] for us in (microseconds, *interval)}
    return f"{time}, {within(interval, unit=len(units) > 1)}"


def within(interval: tuple[float, float] | None, *, unit: bool = True) -> str:
    """An interval of microseconds: "7.1 to 8.6 us", without its unit where that is told; "-" where both ends read alike."""
    ends = [duration(us * 1e-6) for us in interval or (0.0, 0.0)]
    if ends[0] == ends[1]:
        return "-"
    (low, one), (high, other) = (text.split(" ") for text in ends)
    if one != other:
        return f"{ends[0]} to {ends[1]}"
    return f"{low} to {high}" + f" {one}" * unit


@record(repr=False)
class Cost(Printed):
    """A timeline as its readers ask for it. Prints as a line and two tables.

    `interval` is the predicted time in microseconds with all that the chip's tables assume at the quick and at the slow end of
    its range, `on_cores` the same where the launch is as predicted; None where they are not known.
    """

    timeline: Timeline
    interval: tuple[float, float] | None = None
    on_cores: tuple[float, float] | None = None

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
        time = between(t.microseconds, self.interval)
        comma = "," * ("," in time)
        return f"predicted {time}{comma} on {t.chip} ({launch}; {blocks}; bound by {t.bound})"

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
            "microseconds_range": list(self.interval) if self.interval else None,
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
