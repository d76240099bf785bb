"""What one run showed: are the numbers right, was a rule of the machine broken, how long would it take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from tile_eg.ir.program import Program
from tile_eg.ops.records import record
from tile_eg.report.compare import Comparison
from tile_eg.report.cost import Cost
from tile_eg.report.findings import finding_text
from tile_eg.report.memory import MemoryMap
from tile_eg.report.text import size, table
from tile_eg.simulator.findings import Counts, Finding


@record
class RunReport:
    """`ascend_c` and `source` are the texts that findings point into.

    `comparisons` are those of each set of inputs, by its name; None where there was no meaning to compare with: a program that
    was written by hand. `unwritten` tells what the kernel itself leaves unwritten of its outputs. `sample` are the blocks that
    ran, where not all did; `notes` are told beside the numbers.
    """

    program: Program
    cost: Cost
    memory: MemoryMap
    findings: Sequence[Finding]
    counts: Counts
    comparisons: Mapping[str, Sequence[Comparison]] | None
    ascend_c: str
    source: str = ""
    unwritten: Sequence[str] = ()
    sample: Sequence[int] = ()
    notes: Sequence[str] = ()

    @property
    def good(self) -> bool:
        return self.ours_good and not self.unwritten

    @property
    def ours_good(self) -> bool:
        """Whether the text does what the kernel means, be that good or not."""
        return not self.findings and all(c.good for _, c in self._compared())

    def _compared(self) -> list[tuple[str, Comparison]]:
        """Every comparison with the name of its inputs."""
        return [(name, c) for name, compared in (self.comparisons or {}).items() for c in compared]

    def __str__(self) -> str:
        findings = [finding_text(f, self.ascend_c, self.source) for f in self.findings]
        cost = [self.cost.headline(), self.cost.pipes(), self._moved(), str(self.memory)]
        return "\n\n".join(filter(None, [self._head(), *self.unwritten, *findings, self._errors(), *self.notes, *cost]))

    def _moved(self) -> str:
        """What the simulator counted on each path, of all blocks."""
        rows = [(path.replace("->", " -> "), size(n)) for path, n in self.counts.bytes.items() if "->" in path]
        return table(rows, ("path", "bytes moved"), right=(1,))

    def _head(self) -> str:
        p = self.program
        ran = f"{p.blocks} block{'s' * (p.blocks != 1)}"
        if self.sample:
            ran = f"a sample, {len(self.sample)} of {ran} ({shortened(self.sample)}),"
        return f"{p.name}: ran {ran} as {p.kernel_type} in the simulator: {self._verdict()}"

    def _verdict(self) -> str:
        if self.findings:
            return f"BAD, {len(self.findings)} finding{'s' * (len(self.findings) != 1)}"
        if self.comparisons is None:
            return "good, but compared with nothing (a program has no other meaning than its own)"
        if not self.ours_good:
            return "BAD, the numbers differ from the kernel's meaning"
        return "BAD, the kernel does not write all of its outputs" if self.unwritten else "good"

    def _errors(self) -> str:
        if self.comparisons is None:
            return ""
        heads = ("output", "inputs", "largest error", "allowed there", "of the value", "at", "verdict")
        rows = [(c.name, name, *_numbers(c), _place(c), _word(c)) for name, c in self._compared()]
        notes = [f"{c.name}, {name} inputs: {note}" for name, c in self._compared() for note in c.notes]
        return "\n".join([table(rows, heads, right=(2, 3, 4)), *notes])

    def data(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {
            "kernel": self.program.name,
            "chip": self.program.chip,
            "kernel_type": self.program.kernel_type,
            "blocks": self.program.blocks,
            "sample": list(self.sample),
            "good": self.good,
            "outputs": None if self.comparisons is None else [{"inputs": name, **c.data()} for name, c in self._compared()],
            "sums_in_any_order": list(self.program.sums_in_any_order),
            "unwritten": list(self.unwritten),
            "findings": [str(f) for f in self.findings],
            "cost": self.cost.data(),
            "moved_bytes": {path: n for path, n in self.counts.bytes.items() if "->" in path},
            "instructions": self.counts.instructions,
            "memory": self.memory.data(),
        }


def shortened(numbers: Sequence[int], most: int = 12) -> str:
    """The numbers, without those in the middle where there are many: "0, 3, .., 95"."""
    shown = list(map(str, numbers))
    return ", ".join(shown if len(shown) <= most else [*shown[: most - 2], "..", shown[-1]])


def _word(c: Comparison) -> str:
    if c.wrong:
        return f"BAD, {c.wrong} of {c.size - c.not_computed} elements"
    return "not compared" if c.size and c.unbounded + c.not_computed == c.size else "good"


def _numbers(c: Comparison) -> tuple[str, str, str]:
    """The error, what is allowed and the value that should be there; an error that is no number is said by what came out."""
    if not c.error:
        return "0", "-", "-"
    return f"{c.error:.2e}" if isfinite(c.error) else f"is {c.got:g}", f"{c.allowed:.2e}", f"{c.want:.3g}"


def _place(c: Comparison) -> str:
    return f"{c.name}[{', '.join(map(str, c.where))}]" if c.error else "everywhere"
