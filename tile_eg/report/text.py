"""Plain text that lines up: tables, trees, and numbers with their units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_eg.ir.printed import Printed


class Text(Printed, str):
    """A text that shows itself as it is."""

    def __str__(self) -> str:
        return str.__str__(self)


@dataclass
class Branch:
    """A line of a tree and what hangs under it; `columns` stand to the right of it, lined up over the whole tree."""

    label: str
    columns: tuple[str, ...] = ()
    children: list[Branch] = field(default_factory=list)


def _lines(branch: Branch, lead: str, tail: str) -> Iterable[tuple[str, ...]]:
    yield (lead + branch.label, *branch.columns)
    for i, child in enumerate(branch.children):
        last = i == len(branch.children) - 1
        yield from _lines(child, tail + ("└─ " if last else "├─ "), tail + ("   " if last else "│  "))


def tree(roots: Sequence[Branch], header: Sequence[str] = (), right: Iterable[int] = ()) -> str:
    """The trees one under the other, their columns lined up as in `table`; the tree itself is column 0."""
    return table([line for root in roots for line in _lines(root, "", "")], header, right)


def table(rows: Iterable[Sequence[Any]], header: Sequence[str] = (), right: Iterable[int] = ()) -> str:
    """Rows as aligned columns, two spaces apart; the columns numbered in `right` are aligned to the right."""
    lines = [[str(c) for c in row] for row in ([header] if header else []) + list(rows)]
    count = max((len(line) for line in lines), default=0)
    widths = [max((len(line[i]) for line in lines if i < len(line)), default=0) for i in range(count)]
    flush = set(right)
    put = lambda i, cell: cell.rjust(widths[i]) if i in flush else cell.ljust(widths[i])  # noqa: E731
    return "\n".join("  ".join(put(i, cell) for i, cell in enumerate(line)).rstrip() for line in lines)


def size(count: int) -> str:
    """A number of bytes, in units of 1024: 96 B, 64 KiB, 1.5 MiB."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count} B"


def duration(seconds: float) -> str:
    """A time with three digits: 12.3 us, 4.56 ms, 1.2 s."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds / scale < 999.5 else f"{seconds / scale:.0f} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def share(part: float, whole: float) -> str:
    """A part as a percentage."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def times(n: int) -> str:
    """How often: once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def indent(text: str, by: str = "  ") -> str:
    return "\n".join(by + line if line else line for line in text.splitlines())
