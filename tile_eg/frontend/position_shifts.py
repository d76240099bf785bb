"""Shifts by a number that follows from an element's position, `w[i, j // 2] >> (j % 2 * 4)`: a choice among shifts.

So packed numbers are taken apart: the positions of those in one byte or word decide how far it is shifted.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tile_eg.frontend.ranges import all_values
from tile_eg.frontend.scalars import equal
from tile_eg.ir.index import Expr, const, terms_of, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Binary, Index, Number, Parallel, Select, TileExpr, mapped

MOST = 8
"""Different shifts, as of numbers of four bits in a word."""
POSITIONS = 1 << 16
SHIFTS = ("shl", "shr")


def with_known_shifts(s: Parallel) -> Parallel:
    """The loop in which each shift is by a number."""
    return replace(s, body=tuple(replace(a, value=mapped(a.value, lambda e: _chosen(e, s))) for a in s.body))


def _chosen(e: TileExpr, s: Parallel) -> TileExpr:
    if not isinstance(e, Binary) or e.op not in SHIFTS or isinstance(e.y, Number) or (by := _number(e.y)) is None:
        return e
    numbers, (at, times) = _values(by, s), _factored(by)
    found: TileExpr = replace(e, y=Number(float(numbers[-1]), e.span)) if numbers else e
    for n in numbers[:-1]:
        found = Select(equal(at, const(n // times)), replace(e, y=Number(float(n), e.span)), found, e.span)
    return found


def _factored(by: Expr) -> tuple[Expr, int]:
    """What is multiplied, and by which number."""
    terms = terms_of(by)
    return next(iter(terms.items())) if len(terms) == 1 and min(terms.values()) > 0 else (by, 1)


def _values(by: Expr, s: Parallel) -> list[int]:
    """The numbers by which elements are shifted; none where these are too many, or follow from more than the position."""
    extents = dict(zip(s.vars, s.extents, strict=True))
    names = [v for v in s.vars if v in variables(by)]
    if elements_in(by) or variables(by) - extents.keys() or prod(extents[n] for n in names) > POSITIONS:
        return []
    found = sorted({int(n) for n in all_values(by, {n: (0, extents[n] - 1) for n in names}, names).ravel()})
    return found if len(found) <= MOST else []


def _number(e: TileExpr) -> Expr | None:
    """What an operand is as an index."""
    match e:
        case Index(value):
            return value
        case Number(value) if value.is_integer():
            return const(int(value))
        case Binary("add" | "sub" | "mul" as op, x, y):
            a, b = _number(x), _number(y)
            return None if a is None or b is None else a + b if op == "add" else a - b if op == "sub" else a * b
    return None
