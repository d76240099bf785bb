"""Tile expressions of whole numbers as indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tile_eg.errors import NotSearched, Span
from tile_eg.frontend.narrow_positions import wrapped
from tile_eg.frontend.scalars import equal, unequal
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Binary, Cast, Choose, Index, Number, Region, Select

_JOINED: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "max": ix.maximum, "min": ix.minimum,
}  # fmt: skip


_HOLDS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "lt": ix.less, "gt": lambda x, y: ix.less(y, x), "le": lambda x, y: ix.less(x, y + 1), "ge": lambda x, y: ix.less(y, x + 1),
    "eq": equal, "ne": unequal,
}  # fmt: skip

MOST_CHOICES = 4000
"""Characters of an index: each choice takes what it is made of twice, so one that goes on from trip to trip doubles."""


def as_whole(e: Any, read: Callable[[Region], Expr | None] = lambda r: None) -> Expr | None:
    """An expression of indices and whole numbers as an index, choices between them included; None for any other. `read` gives an
    element of whole numbers as an index."""
    as_one = partial(as_whole, read=read)
    match e:
        case bool():
            return None
        case Expr() | int():
            return ix.wrap(e)
        case Number(value=value) if value == int(value):
            return ix.const(int(value))
        case Index(value=value):
            return value
        case Region():
            return read(e)
        case Cast(dtype=dtype, x=x) if dtype.whole:
            return None if (found := as_one(x)) is None else wrapped(found, dtype)
        case Select(condition=c, x=x, y=y):
            return _chosen(c, as_one(x), as_one(y), e.span)
        case Choose(op=op, a=p, b=q, x=x, y=y) if op in _HOLDS:
            left, right = as_one(p), as_one(q)
            return None if left is None or right is None else _chosen(_HOLDS[op](left, right), as_one(x), as_one(y), e.span)
        case Binary(op=op, x=x, y=y) if op in _JOINED:
            a, b = as_one(x), as_one(y)
            return None if a is None or b is None else _JOINED[op](a, b)
    return None


def _chosen(condition: Expr, a: Expr | None, b: Expr | None, span: Span | None) -> Expr | None:
    """`a` where a condition holds, else `b`."""
    if a is None or b is None:
        return None
    found = b + (a - b) * condition
    if len(ix.text(found)) > MOST_CHOICES:
        raise NotSearched("the search has no form for an index that goes through so many choices", span)
    return found
