"""Conditions as authors write them: over indices, over elements, and joined by and, or, not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tile_eg.errors import TileError
from tile_eg.frontend.scalars import negation
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Choose, Select, Span, TileExpr

COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
NAMES = {sign: name for name, sign in COMPARE.items()}


@dataclass(frozen=True)
class Compared:
    """`a op b` of elements."""

    op: str
    a: TileExpr
    b: TileExpr
    span: Span | None = None


@dataclass(frozen=True)
class Logic:
    """op: and, or, not; the parts are conditions."""

    op: str
    parts: tuple[Condition, ...]
    span: Span | None = None


Condition = Expr | Compared | Logic


def is_condition(x: Any) -> bool:
    return isinstance(x, Expr | Compared | Logic)


def of_elements(x: Any) -> bool:
    """Whether a condition looks at elements of tiles."""
    return isinstance(x, Compared | Logic)


def both(a: Condition, b: Condition, span: Span | None) -> Condition:
    return ix.both(a, b) if isinstance(a, Expr) and isinstance(b, Expr) else Logic("and", (a, b), span)


def either(a: Condition, b: Condition, span: Span | None) -> Condition:
    if isinstance(a, Expr) and isinstance(b, Expr):
        return negation(ix.both(negation(a), negation(b)))
    return Logic("or", (a, b), span)


def opposite(a: Condition, span: Span | None) -> Condition:
    return negation(a) if isinstance(a, Expr) else Logic("not", (a,), span)


def chosen(c: Condition, x: TileExpr, y: TileExpr, span: Span | None) -> TileExpr:
    """x where the condition holds, else y: joined conditions are choices inside choices."""
    match c:
        case Expr():
            return Select(c, x, y, span)
        case Compared():
            return Choose(c.op, c.a, c.b, x, y, span)
        case Logic(op="and", parts=(p, q)):
            return chosen(p, chosen(q, x, y, span), y, span)
        case Logic(op="or", parts=(p, q)):
            return chosen(p, x, chosen(q, x, y, span), span)
        case Logic(op="not", parts=(p,)):
            return chosen(p, y, x, span)
    raise TileError("a condition is needed here", span)
