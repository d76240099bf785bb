"""Functions of elements that have a word of their own and no operation: each is written as an expression of others."""

from __future__ import annotations

import math
from collections.abc import Callable

from tile_eg.errors import Span
from tile_eg.ir.kernel import Binary, Number, TileExpr, Unary


def _power_of(base: float) -> Callable[[TileExpr, Span], TileExpr]:
    return lambda x, span: Unary("exp", Binary("mul", x, Number(math.log(base), span), span), span)


def _log2(x: TileExpr, span: Span) -> TileExpr:
    return Binary("mul", Unary("ln", x, span), Number(1 / math.log(2.0), span), span)


def _silu(x: TileExpr, span: Span) -> TileExpr:
    return Binary("mul", x, Unary("sigmoid", x, span), span)


MADE: dict[str, Callable[[TileExpr, Span], TileExpr]] = {
    "exp2": _power_of(2.0), "exp10": _power_of(10.0), "log2": _log2, "silu": _silu,
}  # fmt: skip


def apply(op: str, x: TileExpr, span: Span) -> TileExpr:
    """A function of one tile by its name."""
    return MADE[op](x, span) if op in MADE else Unary(op, x, span)
