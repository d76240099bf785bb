"""Bits of indices by constants, as sums of quotients and remainders."""

from __future__ import annotations

from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr


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
