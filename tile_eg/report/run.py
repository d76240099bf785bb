"""What one run showed: are the numbers right, was a rule of the machine broken, how long would it take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tile_eg.ir.program import Program
from tile_eg.report.compare import Comparison
from tile_eg.report.cost import Cost
from tile_eg.report.memory import MemoryMap
from tile_eg.report.text import table
from tile_eg.simulator.findings import Finding


@dataclass(frozen=True)
class RunReport:
    """`comparisons` is None where there was no meaning to compare with: a program that was written by hand."""

    program: Program
    cost: Cost
    memory: MemoryMap
    findings: Sequence[Finding]
    comparisons: Sequence[Comparison] | None

    @property
    def good(self) -> bool:
        return not self.findings and all(c.good for c in self.comparisons or ())

    def __str__(self) -> str:
        parts = [self._head(), *(str(f) for f in self.findings), self._errors(), str(self.cost), str(self.memory)]
        return "\n\n".join(filter(None, parts))

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
        rows = [(c.name, f"{c.error:.2e}", f"{c.tolerance:.2e}", _place(c), _word(c.good)) for c in self.comparisons]
        return table(rows, ("output", "largest error", "allowed", "at", ""), right=(1, 2))

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
            "memory": self.memory.data(),
        }


def _word(good: bool) -> str:
    return "good" if good else "BAD"


def _place(c: Comparison) -> str:
    return f"{c.name}[{', '.join(map(str, c.where))}]" if c.error else "-"


def _comparison(c: Comparison) -> dict[str, Any]:
    return {"name": c.name, "error": c.error, "tolerance": c.tolerance, "where": list(c.where), "good": c.good}
