"""What tuning found, as people read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tile_eg.ir.arrays import signature
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.printed import Printed
from tile_eg.report.text import duration, share, table
from tile_eg.search.tuned_file import TIMELINE
from tile_eg.tuning.journal import Record
from tile_eg.tuning.trial import Checked

SHOWN = 5


@dataclass(repr=False, eq=False)
class Tuning(Printed):
    """The candidates that were tried, in their order. `by` says of what clock their times are, `own` is the digest of what the
    search chooses by itself, `path` the file that has the best. `exhausted`: there are no more candidates than these."""

    kernel: Kernel
    chip: str
    by: str
    path: Path
    own: str
    budget: int
    blocks: int
    records: list[Record] = field(default_factory=list)
    interrupted: bool = False
    exhausted: bool = False
    most_left_out: int = 0

    @property
    def tried(self) -> int:
        return len(self.records)

    @property
    def right(self) -> list[Record]:
        """Those that have a time, fastest first; among equals what was tried first."""
        return sorted((r for r in self.records if r.microseconds is not None), key=lambda r: r.microseconds or 0.0)

    @property
    def best(self) -> Record | None:
        """The fastest."""
        return next(iter(self.right), None)

    @property
    def untuned(self) -> float | None:
        """The microseconds of the search's own choice; None where it was not timed."""
        return next((r.microseconds for r in self.records if r.program == self.own), None)

    @property
    def times(self) -> dict[str, float]:
        """Microseconds of each candidate that has a time, by the digest of its program."""
        return {r.program: r.microseconds for r in self.records if r.microseconds is not None}

    def checked(self, one: Checked) -> None:
        """Remembers that only some tiles of a candidate were compared."""
        self.most_left_out = max(self.most_left_out, one.tiles - one.compared)

    def __str__(self) -> str:
        title = f"{self.kernel.name}({signature(self.kernel.tensors)}) on {self.chip}"
        return "\n\n".join([title, *([self._table()] if self.best else []), "\n".join(self._said())])

    def _table(self) -> str:
        best = self.right[0].microseconds or 0.0
        header = ("", "time", "", "sizes", "predicted", "")
        rows = [self._row(n, r, best) for n, r in enumerate(self.right[:SHOWN], 1)]
        if self.best and self.untuned is not None and self.own not in {r.program for r in self.right[:SHOWN]}:
            n, own = next((n, r) for n, r in enumerate(self.right, 1) if r.program == self.own)
            rows.append(self._row(n, own, best))
        drop = [i for i in range(len(header)) if not any(r[i] for r in rows)]
        rows = [tuple(c for i, c in enumerate(r) if i not in drop) for r in rows]
        return table(rows, tuple(h for i, h in enumerate(header) if i not in drop), right=(0, 1, 2))

    def _row(self, number: int, r: Record, best: float) -> tuple[str, ...]:
        time = r.microseconds or 0.0
        own = "the search's own choice" if r.program == self.own else ""
        sizes = " ".join(f"{n}={v}" for n, v in r.sizes)
        predicted = duration(r.predicted * 1e-6) if self.by != TIMELINE else ""
        return str(number), duration(time * 1e-6), share(time, best), sizes, predicted, own

    def _said(self) -> list[str]:
        wrong = self.tried - len(self.right)
        count = f"{self.tried} candidate{'s' * (self.tried != 1)} tried"
        lines = [f"{count}, {len(self.right)} right" + (f", {wrong} left out" if wrong else "") + f": {self.by}"]
        if self.by == TIMELINE:
            lines.append("note: the times are predicted, as nothing was measured on an NPU: they say what the cost model prefers")
        if self.most_left_out:
            lines.append(f"note: {self.blocks} tiles of the grid, its corners among them, were compared (--sample 0: all)")
        if self.exhausted:
            lines.append(self._no_more())
        if self.interrupted:
            lines.append("interrupted: " + ("the best so far is kept" if self.best else "nothing was timed, and nothing is kept"))
        if self.best:
            lines.append(f"wrote {self.path}: {self._gain()}")
        return lines

    def _no_more(self) -> str:
        if self.tried == 1:
            return f"note: {self.kernel.name} has one candidate only: there is nothing to choose"
        return f"note: there are no more candidates than these {self.tried}; the budget was {self.budget}"

    def _gain(self) -> str:
        best, own = self.best, self.untuned
        assert best is not None and best.microseconds is not None
        if best.program == self.own:
            return "the search's own choice is the fastest"
        if own is None:
            return duration(best.microseconds * 1e-6)
        return f"{duration(best.microseconds * 1e-6)}, the search's own choice takes {duration(own * 1e-6)}"
