"""Conditions on the position of an element, in the form that a choice by position has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from tile_eg.errors import NotSearched, Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.ranges import Ranges
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Index, Select, TileExpr
from tile_eg.ops.types import EXACT


class Position(NamedTuple):
    """`row * r + col * c op bound`, where r and c are an element's place in its tile."""

    op: str
    row: int
    col: int
    bound: Expr


class Place(NamedTuple):
    """`row * r + col * c + start`, where r and c are an element's place in its tile."""

    row: int
    col: int
    start: Expr


def parts(e: Select) -> tuple[TileExpr, TileExpr, Expr]:
    """A choice by one comparison `a < b`: what is taken where it holds, what else, and the comparison.

    `p and q` becomes a choice inside a choice, `not p` one with its ends changed.
    """
    c, x, y = e.condition, e.x, e.y
    if c.op == "and":
        return parts(replace(e, condition=c.args[0], x=replace(e, condition=c.args[1])))
    if c.op == "lt" and c.args[0].op in ("lt", "and") and c.args[1] == ix.ONE:
        return parts(replace(e, condition=c.args[0], x=y, y=x))
    return x, y, c


def position(
    c: Expr, axes: tuple[str | None, str | None], extents: Mapping[str, int], ranges: Ranges, span: Span | None
) -> Position:
    """A comparison `a < b` at the elements of a tile whose row and column coordinates are the variables `axes`.

    `extents` are those of all variables of the element loop, `ranges` of those outside of it.
    """
    if c.op != "lt":
        raise TileError(f"`{index_text(c)}` is no comparison of indices", span)
    row, col, bound = _along(c.args[1] - c.args[0], axes, extents, span, index_text(c))
    _refuse_beyond(_reach(row, col, axes, extents), "positions up to", span)
    low, high = ix.bounds(bound, ranges)
    if max(-low, high) >= EXACT:
        bound = ix.maximum(-EXACT, ix.minimum(EXACT, bound))
    return Position("lt", -row, -col, bound)


def number(e: Index, value: Expr, axes: tuple[str | None, str | None], extents: Mapping[str, int], ranges: Ranges) -> Place:
    """An index, whose value is this one now, as a number at the elements of a tile; TileError where f32 does not hold it, or the
    sum that it is part of, exactly."""
    place = _along(value, axes, extents, e.span, index_text(value))
    low, high = ix.bounds(place.start, ranges)
    if max(-low, high) >= EXACT and elements_in(place.start):
        what = f"the search has no form for `{index_text(value)}`, which is computed of an element that may be any whole number"
        raise NotSearched(what, e.span, help="take the values of a whole tile, or of a buffer of one element")
    _refuse_beyond(_reach(place.row, place.col, axes, extents) + max(-low, high) + e.beside, "numbers up to", e.span)
    return place


def whole_number(
    e: Expr, axes: tuple[str | None, str | None], extents: Mapping[str, int], span: Span | None
) -> Place:
    """An index as the low 32 bits of a whole number at the elements of a tile; TileError where f32 does not hold what varies
    within the tile."""
    place = _along(e, axes, extents, span, index_text(e))
    _refuse_beyond(_reach(place.row, place.col, axes, extents), "positions up to", span)
    return place


def _along(
    e: Expr, axes: tuple[str | None, str | None], extents: Mapping[str, int], span: Span | None, text: str
) -> Place:
    """An index as multiples of an element's row and column, and what does not go with them."""
    steps, rest = {}, ix.ZERO
    for atom, k in ix.terms_of(e).items():
        if atom.op == "var" and atom.args[0] in extents:
            steps[atom.args[0]] = k
        elif ix.variables(atom) & extents.keys():
            _refuse_beyond(_most(atom, extents) * abs(k), "numbers up to", span)
            raise TileError(
                f"`{text}` is not linear in the loop's variables: not supported yet", span,
                help="positions are compared as in bx*64 + i >= k*64 + j",
            )  # fmt: skip
        else:
            rest = rest + atom * k
    foreign = [v for v in steps if v not in axes and extents[v] > 1]
    if foreign:
        raise TileError(f"`{foreign[0]}` is not an index of what is written here: not supported yet", span)
    row, col = (steps.get(v, 0) if v else 0 for v in axes)
    return Place(row, col, rest)


def _most(e: Expr, extents: Mapping[str, int]) -> int:
    """How large the loop's variables alone make an index; 0 where it goes by more than these."""
    if not ix.variables(e) <= extents.keys() or elements_in(e):
        return 0
    low, high = ix.bounds(e, {v: (0, n - 1) for v, n in extents.items()})
    return max(-low, high)


def _reach(row: int, col: int, axes: tuple[str | None, str | None], extents: Mapping[str, int]) -> int:
    return sum(abs(k) * extents.get(v, 1) for k, v in zip((row, col), axes, strict=True) if v)


def _refuse_beyond(reach: float, what: str, span: Span | None) -> None:
    if reach >= EXACT:
        message = f"{what} {reach} are too large here: whole numbers are exact up to {EXACT} only"
        way = hint("f32(i // 3) * 5e6", 'T.cast(i // 3, "float32") * 5e6', span)
        raise TileError(message, span, help=f"where it may be rounded, multiply a smaller one in floats: {way}")
