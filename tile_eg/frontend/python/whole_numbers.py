"""Tile expressions of whole numbers as indices, and bits of indices by constants."""

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


def bits(op: str, x: Expr, y: Expr) -> Expr | None:
    """`x op y` of indices in arithmetic, where one is a constant from 0 on, of a shift the second; None where neither is."""
    if op in ("shl", "shr"):
        n = y.value
        return None if n is None or n < 0 else x * 2**n if op == "shl" else x // 2**n
    if x.value is not None:
        x, y = y, x
    mask = y.value
    if mask is None or mask < 0:
        return None
    both = _masked(x, mask)
    return {"and": both, "or": x + mask - both, "xor": x + mask - both * 2}.get(op)


def _masked(x: Expr, mask: int) -> Expr:
    """The bits of x in a mask: for each run of ones, that many bits from there on."""
    found, at = ix.ZERO, 0
    while mask >> at:
        if mask >> at & 1:
            run = 1
            while mask >> (at + run) & 1:
                run += 1
            found = found + x // 2**at % 2**run * 2**at
            at += run
        else:
            at += 1
    return found
