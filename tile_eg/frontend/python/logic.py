"""Comparisons, `and`, `or`, `not` and choices of a kernel in Python. A condition of indices is an index that is 0 or 1."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend import conditions, scalars
from tile_eg.frontend.python.bools import as_condition
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.values import as_tile, beside_an_index, is_index, is_tile
from tile_eg.ir import index
from tile_eg.ir.index import Expr

Evaluate = Callable[[Builder, ast.expr], Any]
COMPARE: dict[type[Any], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
SIGNS: dict[type[Any], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def truth(b: Builder, value: Any, node: ast.AST) -> Any:
    """A value where a condition is meant: of one element, whether it is not 0. TileError for a tile, which has no truth."""
    value = as_condition(value, b.span(node))
    if is_tile(value):
        help = "compare, and choose element by element: T.if_then_else(x > 0, x, y); conditions of elements are joined by & and |"
        raise b.error(f"{ast.unparse(node)} is a tile, not a condition", node, help)
    return value


def compared(b: Builder, node: ast.Compare, evaluate: Evaluate) -> Any:
    values = [evaluate(b, e) for e in (node.left, *node.comparators)]
    found: Any = True
    for op, x, y in zip(node.ops, values, values[1:], strict=False):
        found = _and(found, _compare_two(b, type(op), x, y, node))
    return found


def _compare_two(b: Builder, op: type[Any], x: Any, y: Any, node: ast.expr) -> Any:
    if op in (ast.Is, ast.IsNot):
        return COMPARE[op](x, y)
    if op in (ast.In, ast.NotIn) and isinstance(x, Expr) and isinstance(y, Sequence | range):
        return _one_of(b, op, x, y, node)
    x, y = (beside_an_index(this, other, b.along, b.writes) for this, other in ((x, y), (y, x)))
    if is_tile(x) or is_tile(y):
        if op not in SIGNS:
            raise b.error("elements have <, <=, >, >=, == and !=", node)
        span = b.span(node)
        return conditions.Compared(conditions.NAMES[SIGNS[op]], as_tile(x, span), as_tile(y, span), span)
    if isinstance(x, Expr) or isinstance(y, Expr):
        if not (is_index(x) and is_index(y)):
            raise b.error("an index can be compared with integers only", node)
        if op not in SIGNS:
            raise b.error("indices have <, <=, >, >=, == and !=", node)
        return plain(scalars.COMPARE[SIGNS[op]](index.wrap(x), index.wrap(y)))
    return COMPARE[op](x, y)


def _one_of(b: Builder, op: type[Any], x: Expr, values: Sequence[Any], node: ast.expr) -> Any:
    """Whether an index is one of some numbers."""
    found: Any = False
    for v in values:
        equal = _compare_two(b, ast.Eq, x, v, node)
        found = _or(found, equal, b.span(node)) if conditions.is_condition(found) else found or equal
    return found if op is ast.In else opposite(b, found, node)


def plain(e: Expr) -> Any:
    """A condition that does not vary as True or False."""
    return e if e.value is None else bool(e.value)


def _and(x: Any, y: Any) -> Any:
    if not conditions.is_condition(x):
        return y if x else x
    return conditions.both(x, y, None) if conditions.is_condition(y) else x if y else y


def opposite(b: Builder, x: Any, node: ast.expr) -> Any:
    x = truth(b, x, node)
    return conditions.opposite(x, None) if conditions.is_condition(x) else not x


def joined(b: Builder, node: ast.BoolOp, evaluate: Evaluate) -> Any:
    """`and`, `or`: as in Python, what is known when the kernel is read decides whether the rest is looked at."""
    found, before = evaluate(b, node.values[0]), node.values[0]
    for e in node.values[1:]:
        found, before = _joined(b, node, truth(b, found, before), e, evaluate), node
    return found


def _joined(b: Builder, node: ast.BoolOp, found: Any, e: ast.expr, evaluate: Evaluate) -> Any:
    of_kernel = conditions.is_condition(found)
    if not of_kernel and bool(found) is isinstance(node.op, ast.Or):
        return found
    other = evaluate(b, e)
    if not of_kernel:
        return other
    other = truth(b, other, e)
    return _and(found, other) if isinstance(node.op, ast.And) else _or(found, other, b.span(node))


def _or(x: Any, y: Any, span: Span) -> Any:
    if not conditions.is_condition(y):
        return y if y else x
    found = conditions.either(x, y, span)
    return plain(found) if isinstance(found, Expr) else found


def choice(b: Builder, node: ast.IfExp, evaluate: Evaluate) -> Any:
    test = truth(b, evaluate(b, node.test), node.test)
    if not conditions.is_condition(test):
        return evaluate(b, node.body if test else node.orelse)
    x, y = as_tile(evaluate(b, node.body), b.span(node)), as_tile(evaluate(b, node.orelse), b.span(node))
    return conditions.chosen(test, x, y, b.span(node))
