"""Two schedules of one kernel beside each other: decisions, instructions, the time of each pipe, memory, and Ascend C."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from tile_eg.explore.numbered import LEVELS, Numbered
from tile_eg.ir.printed import Printed
from tile_eg.ops.records import record
from tile_eg.report.differences import difference
from tile_eg.report.schedule_tree import instruction
from tile_eg.report.text import indent, size, table

WIDTH = 78


@record(repr=False)
class SideBySide(Printed):
    """Two numbered schedules; `columns` shows their texts in two columns, else as a unified diff."""

    left: Numbered
    right: Numbered
    columns: bool = False

    def __str__(self) -> str:
        sections = {
            f"decisions of {self.right.number}": difference(self.right.candidate.schedule, self.left.candidate.schedule),
            "time": self._time(),
            "instructions, each as often as it stands in the schedule": self._instructions(),
            "memory": self._memory(),
            "Ascend C": self._text(),
        }
        return "\n\n".join(f"{title}\n{indent(text)}" for title, text in sections.items())

    def _table(self, rows: Iterable[Sequence[str]]) -> str:
        return table(rows, ("", str(self.left.number), str(self.right.number)), right=(1, 2))

    def _time(self) -> str:
        """Predicted time, what bounds it, and the cycles that each pipe of a block is busy."""
        a, b = (n.candidate.planned.timeline for n in (self.left, self.right))
        pipes = list(dict.fromkeys([*a.busy, *b.busy]))
        rows = [
            ("predicted", self.left.time, self.right.time),
            ("bound by", a.bound, b.bound),
        ]
        rows += [("cycles of a block", f"{a.block_cycles:.0f}", f"{b.block_cycles:.0f}")]
        rows += [(".".join(p), f"{a.busy.get(p, 0):.0f}", f"{b.busy.get(p, 0):.0f}") for p in pipes]
        return self._table(rows)

    def _instructions(self) -> str:
        a, b = (_counts(n) for n in (self.left, self.right))
        return self._table((name, str(a[name]), str(b[name])) for name in sorted(a.keys() | b.keys()))

    def _memory(self) -> str:
        both = (self.left, self.right)
        rows = [(str(level), *(size(n.bytes(level)) for n in both)) for level in LEVELS]
        return self._table([*rows, ("workspace", *(size(n.workspace) for n in both))])

    def _text(self) -> str:
        a, b = (str(n.candidate.planned.source).splitlines() for n in (self.left, self.right))
        if self.columns:
            return "\n".join(_columns(a, b))
        one, other = (f"schedule {n.number}" for n in (self.left, self.right))
        return "\n".join(difflib.unified_diff(a, b, one, other, lineterm="", n=2)) or "the same text"


def _counts(n: Numbered) -> Counter[str]:
    first = n.candidate.schedule
    phases = first.phases
    return Counter(instruction(step.node) for each in phases for step, _ in each.walk())


def _columns(a: list[str], b: list[str]) -> Iterator[str]:
    """Lines in two columns: `|` between those that differ, `<` and `>` where one side has none."""
    for kind, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for left, right in zip_longest(a[i:j], b[k:m]):
            mark = " " if kind == "equal" else "|" if left is not None and right is not None else "<" if right is None else ">"
            yield f"{(left or '')[:WIDTH]:<{WIDTH}} {mark} {right or ''}".rstrip()
