"""What one run showed: are the numbers right, was a rule of the machine broken, how long would it take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from tile_eg.ir.program import Program
from tile_eg.report.compare import Comparison
from tile_eg.report.cost import Cost
from tile_eg.report.findings import finding_text
from tile_eg.report.memory import MemoryMap
from tile_eg.report.text import size, table
from tile_eg.simulator.findings import Counts, Finding


@dataclass(frozen=True)
class RunReport:
    """`ascend_c` and `source` are the texts that findings point into.

    `comparisons` is None where there was no meaning to compare with: a program that was written by hand.
    """

    program: Program
    cost: Cost
    memory: MemoryMap
    findings: Sequence[Finding]
    counts: Counts
    comparisons: Sequence[Comparison] | None
    ascend_c: str
    source: str = ""

    @property
    def good(self) -> bool:
        return not self.findings and all(c.good for c in self.comparisons or ())

    def __str__(self) -> str:
        findings = [finding_text(f, self.ascend_c, self.source) for f in self.findings]
        cost = [self.cost.headline(), self.cost.pipes(), self._moved()]
        return "\n\n".join(filter(None, [self._head(), *findings, self._errors(), *cost, str(self.memory)]))

    def _moved(self) -> str:
        """What the simulator counted on each path, of all blocks."""
        rows = [(path.replace("->", " -> "), size(n)) for path, n in self.counts.bytes.items() if "->" in path]
        return table(rows, ("path", "bytes moved"), right=(1,))

    def _head(self) -> str:
        p = self.program
        return f"{p.name}: ran {p.blocks} block{'s' * (p.blocks != 1)} as {p.kernel_type} in the simulator: {self._verdict()}"

    def _verdict(self) -> str:
        if self.findings:
            return f"BAD, {len(self.findings)} finding{'s' * (len(self.findings) != 1)}"
        if self.comparisons is None:
            return "good, but compared with nothing (a program has no other meaning than its own)"
        return "good" if self.good else "BAD, the numbers differ from the kernel's meaning"

    def _errors(self) -> str:
        if self.comparisons is None:
            return ""
        heads = ("output", "largest error", "allowed there", "of the value", "at", "verdict")
        rows = [(c.name, *_numbers(c), _place(c), _word(c)) for c in self.comparisons]
        return "\n".join([table(rows, heads, right=(1, 2, 3)), *(note for c in self.comparisons for note in _notes(c))])

    def data(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {
            "kernel": self.program.name,
            "chip": self.program.chip,
            "kernel_type": self.program.kernel_type,
            "good": self.good,
            "outputs": None if self.comparisons is None else [_comparison(c) for c in self.comparisons],
            "findings": [str(f) for f in self.findings],
            "cost": self.cost.data(),
            "moved_bytes": {path: n for path, n in self.counts.bytes.items() if "->" in path},
            "instructions": self.counts.instructions,
            "memory": self.memory.data(),
        }


def _word(c: Comparison) -> str:
    return "good" if c.good else f"BAD, {c.wrong} of {c.size} elements"


def _numbers(c: Comparison) -> tuple[str, str, str]:
    """The error, what is allowed and the value that should be there; an error that is no number is said by what came out."""
    if not c.error:
        return "0", "-", "-"
    return f"{c.error:.2e}" if isfinite(c.error) else f"is {c.got:g}", f"{c.allowed:.2e}", f"{c.want:.3g}"


def _place(c: Comparison) -> str:
    return f"{c.name}[{', '.join(map(str, c.where))}]" if c.error else "everywhere"


def _notes(c: Comparison) -> Iterator[str]:
    """What the table does not say: elements that have no number to compare."""
    if c.nan:
        yield f"{c.name}: {_elements(c.nan, c.size)} NaN, and should be"
    if c.unbounded:
        yield f"{c.name}: {_elements(c.unbounded, c.size)} not compared: roundings decide over their values altogether"


def _elements(n: int, size: int) -> str:
    return f"{n} of {size} elements {'is' if n == 1 else 'are'}"


def _comparison(c: Comparison) -> dict[str, Any]:
    """JSON has no infinity and no NaN: they are null."""
    numbers = {k: v if isfinite(v) else None for k, v in asdict(c).items() if isinstance(v, float)}
    return {**asdict(c), **numbers, "where": list(c.where), "good": c.good}
