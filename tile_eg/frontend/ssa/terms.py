"""Short names for the expressions that functions are made of; a plain number may stand for an operand."""

from __future__ import annotations

from tile_eg.ir import kernel as kn
from tile_eg.ir.kernel import TileExpr


def number(x: TileExpr | float) -> TileExpr:
    return kn.Number(float(x)) if isinstance(x, int | float) else x


def add(x: TileExpr | float, y: TileExpr | float) -> TileExpr:
    return kn.Binary("add", number(x), number(y))


def sub(x: TileExpr | float, y: TileExpr | float) -> TileExpr:
    return kn.Binary("sub", number(x), number(y))


def mul(x: TileExpr | float, y: TileExpr | float) -> TileExpr:
    return kn.Binary("mul", number(x), number(y))


def div(x: TileExpr | float, y: TileExpr | float) -> TileExpr:
    return kn.Binary("div", number(x), number(y))


def un(op: str, x: TileExpr) -> TileExpr:
    return kn.Unary(op, x)


def where(a: TileExpr, op: str, b: TileExpr | float, x: TileExpr | float, y: TileExpr | float) -> TileExpr:
    return kn.Choose(op, a, number(b), number(x), number(y))


def polynomial(x: TileExpr, *coefficients: float) -> TileExpr:
    """By Horner's rule, the highest power first."""
    value: TileExpr | float = coefficients[0]
    for c in coefficients[1:]:
        value = add(mul(value, x), c)
    return number(value)
