"""Published times of other people's texts, beside what the timeline says of the same text as it runs in the simulator."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.targets.catlass import Timed, timed
from tile_eg.errors import TileError
from tile_eg.report.text import duration, table

DATA = Path(__file__).with_name("replayed.toml")


@dataclass(frozen=True)
class Text:
    """One published time in microseconds of an example of CATLASS, for a product of M, N and K."""

    example: str
    sizes: tuple[int, int, int]
    chip: str
    measured: float
    source: str

    def line(self, found: Timed) -> tuple[str, ...]:
        """The row as it is shown."""
        times = (duration(us * 1e-6) for us in (self.measured, found.microseconds, found.least, found.most))
        shape = " x ".join(map(str, self.sizes))
        return (self.example, shape, self.chip, *times, f"{found.microseconds / self.measured - 1:+.1%}")


def texts() -> Iterator[Text]:
    """Every row of the data file, in its order."""
    data = tomllib.loads(DATA.read_text("utf-8"))
    for t in data["table"]:
        for row in t["rows"]:
            for example, measured in zip(t["examples"], row["times"], strict=True):
                yield Text(example, tuple(row["sizes"]), t["chip"], measured, data["sources"][t["source"]])


def shown(checkout: Path) -> str:
    """Each text that runs here and finds its own results right, and the mean error. TileError where none does, or where the
    checkout is none of CATLASS."""
    ran = [(row, found) for row in texts() if (found := _timed(checkout, row))]
    if not ran:
        raise TileError("none of the texts ran here and found its results right", help="tile-eg simulate shows why one does not")
    head = ("text", "M x N x K", "chip", "measured", "predicted", "least", "most", "error")
    return f"{table([row.line(found) for row, found in ran], head, right=(3, 4, 5, 6, 7))}\n\n{_summary(ran)}"


def _timed(checkout: Path, row: Text) -> Timed | None:
    print(f"running {row.example} at {row.sizes}", file=sys.stderr, flush=True)
    return timed(checkout, row.example, row.sizes, row.chip)


def _summary(ran: Sequence[tuple[Text, Timed]]) -> str:
    inside = sum(found.least <= row.measured <= found.most for row, found in ran)
    errors = [abs(found.microseconds / row.measured - 1) for row, found in ran]
    return f"mean error of {len(ran)} texts: {mean(errors):.1%}; {inside} lie between the least and the most that is predicted"
