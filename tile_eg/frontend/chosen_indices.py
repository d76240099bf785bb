"""Indices that a condition on themselves leaves out: `T.if_then_else(q[i] >= 0, X[q[i], j], 0.0)` reads nothing where q[i] is -1.

The equality: where `q >= low` holds, q is max(q, low); elsewhere what is read is not chosen. So with `q <= high` and
min(q, high). Where `q != n` holds, q is q - n * (q == n), and 0 takes the place of n elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, floor, isfinite

from tile_eg.frontend.guarded_parts import Shapes
from tile_eg.frontend.scalars import equal
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import element, with_elements
from tile_eg.ir.kernel import Choose, Number, Parallel, Region, TileExpr, mapped
from tile_eg.ops.elementwise import COMPARE

Within = Callable[[Expr], Expr]


def with_chosen_indices(s: Parallel, shapes: Shapes) -> Parallel:
    """The loop in which an index that a choice compares with a number is within what the choice leaves of it, in each arm."""

    def kept(e: TileExpr) -> TileExpr:
        if not isinstance(e, Choose) or e.op not in COMPARE:
            return e
        arms = (e.x, e.op), (e.y, COMPARE[e.op].otherwise)
        x, y = (_in_arm(arm, _compared(e, op, shapes)) for arm, op in arms)
        return e if x is e.x and y is e.y else replace(e, x=x, y=y)

    return replace(s, body=tuple(replace(a, value=mapped(a.value, kept)) for a in s.body))


def _in_arm(arm: TileExpr, known: tuple[Expr, Within] | None) -> TileExpr:
    """An arm in which an element that is an index is what is `known` of it."""
    if known is None:
        return arm
    element, within = known

    def bounded(e: Expr) -> Expr:
        return within(e) if e.args[:2] == element.args[:2] else e

    def read(e: TileExpr) -> TileExpr:
        if not isinstance(e, Region):
            return e
        starts = tuple(with_elements(start, bounded) for start in e.starts)
        return e if starts == e.starts else replace(e, starts=starts)

    return mapped(arm, read)


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
