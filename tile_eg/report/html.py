"""Views for a notebook: tables with bars, and a memory as a map. Plain HTML with its own styles, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tile_eg.ops.records import record
from tile_eg.report.text import Branch

LINE = "rgba(128,128,128,.35)"
FILL = "rgba(70,130,180,.75)"
CELL = "padding:1px 10px 1px 0;text-align:left;white-space:pre;border:none"
NUMBER = CELL.replace("left", "right")


@record
class Bar:
    """A part of a whole, 0 to 1, drawn behind its text."""

    part: float
    text: str = ""


@record
class Strip:
    """A memory from its first byte to its last one, 0 to 1: the pieces (begin, end) that are taken, and what they are."""

    pieces: tuple[tuple[float, float], ...]
    title: str = ""


Cell = str | Bar | Strip


def html_table(rows: Iterable[Sequence[Cell]], header: Sequence[str] = (), right: Iterable[int] = ()) -> str:
    """Rows under a header; the columns numbered in `right` are aligned to the right."""
    flush = set(right)
    head = "".join(f'<th style="{_style(i, flush)}">{escape(h)}</th>' for i, h in enumerate(header))
    body = "".join(f"<tr>{''.join(_cell(c, i, flush) for i, c in enumerate(row))}</tr>" for row in rows)
    return f'<table style="font-family:monospace;border-collapse:collapse"><tr>{head}</tr>{body}</table>'


def html_tree(roots: Sequence[Branch], header: Sequence[str], bars: int, right: Iterable[int] = ()) -> str:
    """Trees as a table, a branch further right than what it hangs under; column `bars` is drawn against its largest number."""
    lines = [line for root in roots for line in _lines(root, 0)]
    numbers = [float(line[bars]) for line in lines if len(line) > bars and line[bars].replace(".", "", 1).isdigit()]
    most = max(numbers, default=0.0)
    return html_table([_with_bar(line, bars, most) for line in lines], header, right)


def paragraphs(*parts: str) -> str:
    """Parts of a view, one below the other."""
    return "".join(f'<div style="margin:4px 0">{part}</div>' for part in parts if part)


def _lines(branch: Branch, depth: int) -> Iterable[tuple[str, ...]]:
    yield ("    " * depth + branch.label, *branch.columns)
    for child in branch.children:
        yield from _lines(child, depth + 1)


def _with_bar(line: tuple[str, ...], at: int, most: float) -> tuple[Cell, ...]:
    if len(line) <= at or not line[at] or not most:
        return line
    return (*line[:at], Bar(float(line[at]) / most, line[at]), *line[at + 1 :])


def _style(column: int, flush: set[int]) -> str:
    return NUMBER if column in flush else CELL


def _cell(cell: Cell, column: int, flush: set[int]) -> str:
    style = _style(column, flush)
    if isinstance(cell, Bar):
        width = f"{100 * min(1.0, max(0.0, cell.part)):.1f}%"
        bar = f"min-width:80px;background:linear-gradient(to right,{FILL} {width},transparent {width})"
        return f'<td style="{style};{bar}">{escape(cell.text)}</td>'
    if isinstance(cell, Strip):
        return f'<td style="{CELL}">{_strip(cell)}</td>'
    return f'<td style="{style}">{escape(cell)}</td>'


def _strip(strip: Strip) -> str:
    inside = f"position:absolute;top:0;bottom:0;background:{FILL}"
    places = (f"left:{100 * begin:.2f}%;width:{100 * (end - begin):.2f}%" for begin, end in strip.pieces)
    pieces = "".join(f'<div style="{inside};{place}"></div>' for place in places)
    outside = f"position:relative;width:320px;height:12px;border:1px solid {LINE}"
    return f'<div style="{outside}" title="{escape(strip.title)}">{pieces}</div>'
