"""Rows, columns and elements of a tile at places that vary: each is taken out and put in by a choice by position.

One that is taken out is the sum of the tile with zeros everywhere else, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from tile_eg.errors import NotSearched, Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.ranges import Ranges, extremes
from tile_eg.frontend.ssa.parts import Part
from tile_eg.frontend.ssa.positions import Position
from tile_eg.frontend.ssa.tiles import Tiles, valid_cols, valid_rows
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Region
from tile_eg.ir.values import Term
from tile_eg.ops.records import record
from tile_eg.ops.types import F32, I32, U16, U32, WHOLE, DType

Made = TypeVar("Made")


def lies_inside(t: Term, p: Part, ranges: Ranges, within: Expr) -> bool:
    """Whether a window lies inside its tile at all times."""
    ends = ((p.row, 1 + (p.rows - 1) * p.step, t.rows), (p.col, p.cols, t.cols))
    return all(low >= 0 and high + n <= size for e, n, size in ends for low, high in (extremes(e, ranges, within),))


def is_piece(t: Term, p: Part) -> bool:
    """Whether a window is one row, one column or one element of a tile, or all of it."""
    rows = p.rows == 1 or (p.row, p.rows, p.step) == (ix.ZERO, t.rows, 1)
    return rows and (p.cols == 1 or (p.col, p.cols) == (ix.ZERO, t.cols))


@record
class Ended:
    """Where a row, column or element stands that is taken alone, and an extent that it may lie beyond; the choices, from the
    inside out, in which it matters in one arm alone: in the first one or not; and the tile's name."""

    place: Expr
    extent: Expr
    name: str
    arms: tuple[tuple[Position, bool], ...] = ()


class Reader(Protocol):
    """What reads expressions, and notes what of them a tensor's end may cut off."""

    ended: list[Ended]


def chosen_by(r: Reader, holds: Position, choice: Callable[[], Made], *arms: Callable[[], object]) -> Made:
    """What a choice by indices makes; what its first or its second arm takes alone matters where that one is chosen."""
    before, r.ended = r.ended, []
    made = choice()
    for arm, first in zip(arms, (True, False), strict=True) if r.ended else ():
        r.ended = []
        arm()
        before = [*before, *(replace(e, arms=(*e.arms, (holds, first))) for e in r.ended)]
    r.ended = before
    return made


def ends_before(t: Term, p: Part, name: str, ranges: Ranges, within: Expr) -> list[Ended]:
    """Where a row, column or element of the tile called `name` stands that may not exist."""
    places = (p.row, p.rows, t.rows, valid_rows(t)), (p.col, p.cols, t.cols, valid_cols(t))
    return [
        Ended(at, end, name) for at, count, size, end in places
        if count == 1 and size > 1 and end.value != size and extremes(at - end, ranges, within)[1] >= 0
    ]  # fmt: skip


def check_exists(ended: Iterable[Ended], ranges: Ranges, within: Expr, span: Span | None) -> None:
    """TileError where a statement that has nothing to keep takes an element that exists in no block and no trip."""
    for e in ended:
        if not e.arms and extremes(e.place - e.extent, ranges, within)[0] >= 0:
            at, end = extremes(e.place, ranges, within)[0], extremes(e.extent, ranges, within)[1]
            what = f"`{e.name}` ends after {end} here, as its tensor does: there is no element {at}"
            raise TileError(what, span, help="take one that exists, or pad what is loaded: "
                            + hint("pad(A[i, j], 0)", "T.copy(A[i, j], x, pad_value=0)", span))  # fmt: skip


def taken(tiles: Tiles, t: Term, p: Part, name: str, span: Span | None) -> Term:
    """A row or an element of a tile (one row), or a column (as a vector). NotSearched for other windows."""
    if not is_piece(t, p):
        raise _no_piece(name, span)
    dtype = t.dtype
    work = tiles.cast(t, _summed(dtype, name, span), span)
    if p.cols == 1 and t.cols > 1:
        work = tiles.reduce("sum", _alone(tiles, work, 0, 1, p.col, span), 1, span)
        if t.rows > 1 and p.rows == 1:
            work = tiles.reduce("sum", _alone(tiles, work, 0, 1, p.row, span), 1, span)
    elif p.rows == 1 and t.rows > 1:
        work = tiles.reduce("sum", _alone(tiles, work, 1, 0, p.row, span), 0, span)
    return tiles.cast(work, dtype, span) if dtype is not None else work


def as_vector(tiles: Tiles, t: Term, r: Region) -> Term:
    """What a region takes of a tile: of the only column a vector, where the region is one."""
    if len(r.shape) != 1 or t.rows == 1 or t.cols != 1:
        return t
    work = tiles.cast(t, _summed(t.dtype, r.name, r.span), r.span)
    return tiles.cast(tiles.reduce("sum", work, 1, r.span), t.dtype or F32, r.span)


def _alone(tiles: Tiles, t: Term, i: int, j: int, at: Expr, span: Span | None) -> Term:
    return tiles.choose_at(Position("eq", i, j, at), (t, tiles.make(span, "fill", 0.0, like=t)), span)


def _summed(dtype: DType | None, name: str, span: Span | None) -> DType:
    """The type in which one number of this type and zeros have an exact sum."""
    if dtype in (I32, U32, U16):
        help = "take a column in an element loop, v[i] = x[i, j]; or keep it as i16 or f32, or take it from a tensor"
        raise NotSearched(f"single elements of `{name}`, which holds {dtype}, are not taken out of a tile yet", span, help=help)
    return F32 if dtype is None or dtype in WHOLE else dtype


def placed(tiles: Tiles, old: Term, value: Term, p: Part, name: str, span: Span | None) -> Term:
    """The tile with another row, column (a vector) or element in a place."""
    if not is_piece(old, p):
        raise _no_piece(name, span)
    if (p.rows, p.cols) == (old.rows, old.cols):
        return tiles.broadcast(value, 1, 1, span) if (value.rows, value.cols) == (1, p.rows) else value
    one_row, one_col = p.rows == 1 and old.rows > 1, p.cols == 1 and old.cols > 1
    value = tiles.cast(value, old.dtype, span) if old.dtype is not None else value
    value = _there(tiles, value, span, rows=True, cols=one_row and one_col)
    if one_col:
        value = tiles.reduce("sum", value, 1, span) if value.rows > 1 else value  # a tile of one column
        value = tiles.broadcast(value, 1, old.cols, span)
    if one_row:
        value = tiles.broadcast(value, 0, old.rows, span)
    for one, (i, j, at) in ((one_col, (0, 1, p.col)), (one_row, (1, 0, p.row))):
        value = tiles.choose_at(Position("eq", i, j, at), (value, old), span) if one else value
    return value


def _there(tiles: Tiles, value: Term, span: Span | None, rows: bool, cols: bool) -> Term:
    """A row, column or element with zeros instead, where a tensor may end before it: its rows, or columns, all exist."""
    full: dict[str, Any] = {"vrows": ix.const(value.rows)} if rows else {}
    full |= {"vcols": ix.const(value.cols)} if cols else {}
    if all(getattr(value, valid) in (None, end) for valid, end in full.items()):
        return value
    zeros = tiles.fill(0.0, (value.rows, value.cols), value.dtype or F32, span)
    return tiles.make(span, "put", ix.ZERO, zeros, value, like=value, **full)


def _no_piece(name: str, span: Span | None) -> NotSearched:
    return NotSearched(
        f"this part of `{name}` is neither whole nor one row, column or element of it: not supported yet", span,
        help="loop over its rows, or keep the part in a buffer of its own",
    )  # fmt: skip
