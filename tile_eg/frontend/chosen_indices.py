"""Indices that a condition on themselves leaves out: `T.if_then_else(q[i] >= 0, X[q[i], j], 0.0)` reads nothing where q[i] is -1.

The equality: where `q >= low` holds, q is max(q, low); elsewhere what is read is not chosen. So with `q <= high` and
min(q, high). Where `q != n` holds, q is q - n * (q == n), and 0 takes the place of n elsewhere. Where a comparison of other whole
numbers that are read holds, `T.if_then_else(valid[i] > 0, X[q[i], j], 0.0)`, an index is itself times that it holds, 0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil, floor, isfinite

from tile_eg.frontend.guarded_parts import Shapes
from tile_eg.frontend.narrow_positions import Types
from tile_eg.frontend.scalars import equal, negation, unequal
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import element, elements_in, with_elements
from tile_eg.ir.kernel import Choose, Number, Parallel, Region, Select, TileExpr, mapped
from tile_eg.ops.elementwise import COMPARE
from tile_eg.ops.types import INDICES

Within = Callable[[Expr], Expr]


def with_chosen_indices(s: Parallel, shapes: Shapes, types: Types) -> Parallel:
    """The loop in which an index that a choice compares with a number is within what the choice leaves of it, in each arm, and
    any other index that is read is 0 where the choice leaves it out."""

    def kept(e: TileExpr, target: Region) -> TileExpr:
        if isinstance(e, Select) and elements_in(e.condition):
            arms = (e.x, e.condition), (e.y, negation(e.condition))
            x, y = (_in_arm(arm, target, None, holds) for arm, holds in arms)
            return e if x is e.x and y is e.y else replace(e, x=x, y=y)
        if not isinstance(e, Choose) or e.op not in COMPARE:
            return e
        ways = (e.x, e.op), (e.y, COMPARE[e.op].otherwise)
        sides = [_whole(side, shapes, types) for side in (e.a, e.b)]
        x, y = (_in_arm(arm, target, _compared(e, op, shapes), _holds(op, *sides)) for arm, op in ways)
        return e if x is e.x and y is e.y else replace(e, x=x, y=y)

    return replace(s, body=tuple(replace(a, value=mapped(a.value, partial(kept, target=a.target))) for a in s.body))


def _in_arm(arm: TileExpr, target: Region, known: tuple[Expr, Within] | None, holds: Expr | None) -> TileExpr:
    """An arm in which an element that is an index is what is `known` of it, and other indices count where the arm is chosen. What
    the `target` of the assignment keeps is not read."""

    def bounded(e: Expr) -> Expr:
        return known[1](e) if known is not None and e.args[:2] == known[0].args[:2] else e

    def start(e: Expr) -> Expr:
        found = with_elements(e, bounded)
        return found if found != e or holds is None or not elements_in(e) else holds * e

    def read(e: TileExpr) -> TileExpr:
        if not isinstance(e, Region) or e == target:
            return e
        starts = tuple(map(start, e.starts))
        return e if starts == e.starts else replace(e, starts=starts)

    return mapped(arm, read)


def _whole(e: TileExpr, shapes: Shapes, types: Types) -> Expr | float | None:
    """A side of a comparison as a whole number that the scalar unit may read, or a number; None for others."""
    if isinstance(e, Number):
        return e.value
    shape = shapes(e.name) if isinstance(e, Region) and all(n is None for n in e.extents) else None
    if not isinstance(e, Region) or shape is None or len(shape) != len(e.starts) or types(e.name) not in INDICES:
        return None
    return element(e.name, shape, e.starts)


def _holds(op: str, a: Expr | float | None, b: Expr | float | None) -> Expr | None:
    """1 where two sides of which one is read compare so, else 0."""
    if isinstance(b, Expr) and isinstance(a, float | int):
        op, a, b = COMPARE[op].turned or op, b, a
    if not isinstance(a, Expr) or b is None:
        return None
    if not isinstance(b, Expr):
        return _beside_number(op, a, b) if isfinite(b) else None
    match op:
        case "gt" | "lt":
            return ix.less(*((b, a) if op == "gt" else (a, b)))
        case "ge" | "le":
            return ix.less(*((b, a + 1) if op == "ge" else (a, b + 1)))
        case "eq" | "ne":
            return equal(a, b) if op == "eq" else unequal(a, b)
    return None


def _beside_number(op: str, q: Expr, bound: float) -> Expr | None:
    match op:
        case "gt" | "ge":
            return ix.less(floor(bound) if op == "gt" else ceil(bound) - 1, q)
        case "lt" | "le":
            return ix.less(q, ceil(bound) if op == "lt" else floor(bound) + 1)
        case "eq" | "ne" if float(bound).is_integer():
            return (equal if op == "eq" else unequal)(q, ix.const(int(bound)))
    return None


def _compared(e: Choose, op: str, shapes: Shapes) -> tuple[Expr, Within] | None:
    """The element that a choice compares with a number, and what it is where `op` holds; None for other choices."""
    if isinstance(e.a, Number):
        return _bounded(e.b, COMPARE[op].turned or op, e.a.value, shapes)
    return _bounded(e.a, op, e.b.value, shapes) if isinstance(e.b, Number) else None


def _bounded(r: TileExpr, op: str, bound: float, shapes: Shapes) -> tuple[Expr, Within] | None:
    shape = shapes(r.name) if isinstance(r, Region) and all(n is None for n in r.extents) else None
    within = _within(op, bound) if isfinite(bound) else None
    if within is None or not shape or not isinstance(r, Region) or len(shape) != len(r.starts):
        return None
    return element(r.name, shape, r.starts), within


def _within(op: str, bound: float) -> Within | None:
    """What a whole number is where it compares so with a bound."""
    match op:
        case "ge" | "gt":
            low = ceil(bound) if op == "ge" else floor(bound) + 1
            return lambda q: ix.maximum(q, low)
        case "le" | "lt":
            high = floor(bound) if op == "le" else ceil(bound) - 1
            return lambda q: ix.minimum(q, high)
        case "ne" if bound.is_integer():
            return lambda q: q - equal(q, ix.const(int(bound))) * int(bound)
    return None
