"""What is known of buffers and of windows of tensors at a place of a kernel, as values."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.expert.extents import Extents
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in, with_elements
from tile_eg.ir.program import Gm, Tile
from tile_eg.ops.records import record


@record
class Part:
    """The window of a buffer that was written last, one of several: where it begins, its size, and how much of it exists."""

    row: Expr
    col: Expr
    rows: int
    cols: int
    extents: Extents

    def is_at(self, t: Tile, count: int) -> bool:
        """Whether it is the window of so many elements that begins here."""
        return (self.row, self.col) == (t.row, t.col) and self.rows * self.cols == count


Stored = tuple[Gm, int, int]
"""A window of a tensor, its rows and its columns."""


@record
class Trips:
    """What was known before a loop."""

    known: dict[str, Extents]
    filled: set[str]
    fresh: set[str]
    looked: dict[str, Span]
    late: dict[tuple[str, int], Span | None]
    moved: set[str]
    joined: dict[str, Span | None]


def mentions(known: Any, name: str) -> bool:
    """Whether an index in it reads a number that the scalar unit keeps under this name."""
    if isinstance(known, Expr):
        return any(e.args[0] == name for e in all_elements_in(known))
    return any(mentions(part, name) for part in _parts(known))


def _parts(known: Any) -> list[Any]:
    if isinstance(known, dict):
        return [*known.keys(), *known.values()]
    if is_dataclass(known) and not isinstance(known, Span):
        return [getattr(known, f.name) for f in fields(known)]
    return [*known] if isinstance(known, tuple) else []


def with_number(known: Any, name: str, now: Expr) -> Any:
    """It with another number in place of the one that the scalar unit keeps under this name."""
    if isinstance(known, Expr):
        return with_elements(known, lambda e: now if e.args[0] == name else replace(e, args=_of_read(e, name, now)))
    if isinstance(known, dict):
        return {with_number(k, name, now): with_number(v, name, now) for k, v in known.items()}
    if isinstance(known, tuple):
        return tuple(with_number(part, name, now) for part in known)
    if is_dataclass(known) and not isinstance(known, Span | type):
        return replace(known, **{f.name: with_number(getattr(known, f.name), name, now) for f in fields(known)})
    return known


def _of_read(e: Expr, name: str, now: Expr) -> tuple[Any, ...]:
    return (e.args[0], with_number(e.args[1], name, now), *e.args[2:])
