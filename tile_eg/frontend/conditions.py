"""Conditions as authors write them: over indices, over elements, and joined by and, or, not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.scalars import negation
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Assign, Choose, Number, Select, Stmt, TileExpr
from tile_eg.ir.operands import regions
from tile_eg.ops.elementwise import COMPARE
from tile_eg.ops.records import record

NAMES = {op.sign: op.name for op in COMPARE.values()}


@record
class Compared:
    """`a op b` of elements."""

    op: str
    a: TileExpr
    b: TileExpr
    span: Span | None = None


@record
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


def compared_in(c: Condition) -> list[Compared]:
    """The comparisons of elements that a condition is made of."""
    return [c] if isinstance(c, Compared) else [x for p in c.parts for x in compared_in(p)] if isinstance(c, Logic) else []


def both(a: Condition, b: Condition, span: Span | None) -> Condition:
    return ix.both(a, b) if isinstance(a, Expr) and isinstance(b, Expr) else Logic("and", (a, b), span)


def either(a: Condition, b: Condition, span: Span | None) -> Condition:
    if isinstance(a, Expr) and isinstance(b, Expr):
        return negation(ix.both(negation(a), negation(b)))
    return Logic("or", (a, b), span)


def opposite(a: Condition, span: Span | None) -> Condition:
    return negation(a) if isinstance(a, Expr) else Logic("not", (a,), span)


def joined(operator: str, a: Any, b: Any, span: Span | None) -> Condition:
    """Conditions of elements joined as NumPy does, by & and |."""
    if operator not in ("BitAnd", "BitOr") or not (is_condition(a) and is_condition(b)):
        help = "(a and not b) or (b and not a)" if operator == "BitXor" else "both sides are conditions: (x > 0) & (x < 1)"
        raise TileError("conditions are joined by and, or, not (also & and |)", span, help=help)
    return both(a, b, span) if operator == "BitAnd" else either(a, b, span)


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


def guarded(c: Condition, then: Sequence[Stmt], otherwise: Sequence[Stmt], span: Span | None) -> list[Assign]:
    """A branch in an element loop as assignments: each keeps what its target holds, or adds nothing, where it is not meant.

    TileError where one of them changes what the condition looks at and others come behind it.
    """
    if (both_arms := _paired(c, then, otherwise)) is not None:
        return both_arms
    arms = [(c, s) for s in then] + [(opposite(c, span), s) for s in otherwise]
    seen = {r.name for r in regions(chosen(c, Number(0.0), Number(0.0), span))}
    changed = next((s for _, s in arms[:-1] if isinstance(s, Assign) and s.target.name in seen), None)
    if changed is not None:
        raise TileError(
            f"this branch looks at `{changed.target.name}` and changes it before its end", changed.span or span,
            help="keep what the condition compares in another buffer, or choose: "
            + hint("select(x > 0, x, y)", "T.if_then_else(x > 0, x, y)", changed.span or span),
        )  # fmt: skip
    return [replace(s, value=chosen(own, s.value, _otherwise(s), s.span)) for own, s in arms if isinstance(s, Assign)]


def _otherwise(s: Assign) -> TileExpr:
    if s.atomic in ("max", "min"):
        help = f"take a number that changes nothing: T.atomic_{s.atomic}(y[j], T.if_then_else(x[i] > 0, x[i], -1e30))"
        raise TileError(f"T.atomic_{s.atomic} under a condition is not supported in T.Parallel", s.span, help=help)
    return Number(0.0, s.span) if s.atomic else s.target


def _paired(c: Condition, then: Sequence[Stmt], otherwise: Sequence[Stmt]) -> list[Assign] | None:
    """One assignment for both arms where they write the same elements in the same order, and none is looked at on the way."""
    pairs = [(s, o) for s, o in zip(then, otherwise, strict=False) if isinstance(s, Assign) and isinstance(o, Assign)]
    alike = len(then) == len(otherwise) == len(pairs) and all((s.target, s.atomic) == (o.target, o.atomic) for s, o in pairs)
    seen = {r.name for r in regions(chosen(c, Number(0.0), Number(0.0), None))}
    if not alike or seen & {s.target.name for s, _ in pairs[:-1]}:
        return None
    return [replace(s, value=chosen(c, s.value, o.value, s.span)) for s, o in pairs]
