"""Tile expressions of whole numbers as indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.frontend.narrow_positions import wrapped
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Binary, Cast, Index, Number, Select

_JOINED: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "max": ix.maximum, "min": ix.minimum,
}  # fmt: skip


def as_whole(e: Any) -> Expr | None:
    """An expression of indices and whole numbers as an index; None for any other."""
    match e:
        case bool():
            return None
        case Expr() | int():
            return ix.wrap(e)
        case Number(value=value) if value == int(value):
            return ix.const(int(value))
        case Index(value=value):
            return value
        case Cast(dtype=dtype, x=x) if dtype.whole:
            return None if (found := as_whole(x)) is None else wrapped(found, dtype)
        case Select(condition=c, x=x, y=y):
            a, b = as_whole(x), as_whole(y)
            return None if a is None or b is None else b + (a - b) * c
        case Binary(op=op, x=x, y=y) if op in _JOINED:
            a, b = as_whole(x), as_whole(y)
            return None if a is None or b is None else _JOINED[op](a, b)
    return None
