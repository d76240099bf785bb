"""Tile expressions of whole numbers as indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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
            a, b = as_one(x), as_one(y)
            return None if a is None or b is None else b + (a - b) * c
        case Choose(op=op, a=p, b=q, x=x, y=y) if op in _HOLDS:
            a, b = as_one(x), as_one(y)
            left, right = as_one(p), as_one(q)
            return None if None in (a, b, left, right) else b + (a - b) * _HOLDS[op](left, right)  # type: ignore[operator,arg-type]
        case Binary(op=op, x=x, y=y) if op in _JOINED:
            a, b = as_one(x), as_one(y)
            return None if a is None or b is None else _JOINED[op](a, b)
    return None
