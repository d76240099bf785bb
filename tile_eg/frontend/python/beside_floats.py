"""Whole numbers beside floats in arithmetic: they are floats there, as in TileLang, where whole numbers have no such result."""

from __future__ import annotations

import ast
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.values import as_tile
from tile_eg.frontend.widened import element_type
from tile_eg.ir.kernel import Cast, Number, TileExpr
from tile_eg.ops.types import F32


def beside_floats(b: Builder, op: type[Any], x: Any, y: Any, span: Span) -> tuple[TileExpr, TileExpr]:
    """The operands as tiles: whole numbers that are divided by floats, or divide them, and those beside a number that is none of
    theirs (`n * 0.5`), are f32."""
    a, c = as_tile(x, span), as_tile(y, span)
    return _beside(b, op, a, c, y, span), _beside(b, op, c, a, x, span)


def _beside(b: Builder, op: type[Any], e: TileExpr, other: TileExpr, said: Any, span: Span) -> TileExpr:
    """One operand, where the other one is `other`, which the author wrote as `said`."""
    dtype = element_type(e, b.dtype_of)
    if dtype is None or not dtype.whole:
        return e
    there = element_type(other, b.dtype_of)
    broken = isinstance(other, Number) and not other.value.is_integer()
    divided = op is ast.Div and (isinstance(said, float) or (there is not None and not there.whole))
    return Cast(F32, e, span) if divided or (broken and op in (ast.Add, ast.Sub, ast.Mult, ast.Div)) else e
