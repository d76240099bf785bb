"""Tensors and buffers of bools (`m: bool[M, N]`): bytes that are 0 or 1, and conditions where one is meant."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.bools import of_bools
from tile_eg.frontend.conditions import Compared, chosen
from tile_eg.frontend.windows import OpenWindow
from tile_eg.ir.kernel import Broadcast, Number, Region, TileExpr, Whole

BOOL = "bool"
"""The element type, as authors write it."""


def name_of(e: Any) -> str:
    """The tensor or buffer of a window; nothing of another expression."""
    return e.tensor.name if isinstance(e, OpenWindow) else e.name if isinstance(e, Region) else ""


def as_condition(value: Any, bools: Collection[str]) -> Any:
    """Elements of bools as a condition; anything else as it is."""
    held = name_of(value.x if isinstance(value, Broadcast) else value)
    turned = isinstance(value, Whole) and of_bools(value, bools)
    return _is_true(value, value.span) if held in bools or turned else value


def as_stored(value: TileExpr, target: Any, op: str | None, bools: Collection[str], span: Span) -> TileExpr:
    """What is stored of a value: where bools are 1 where it is not 0, else 0. TileError where sums, or numbers as they lie in a
    tensor, would be stored there."""
    if name_of(target) not in bools or name_of(value) in bools and op is None:
        return value
    if op is not None or isinstance(value, OpenWindow):
        what = "holds bools, to which nothing is added" if op else "holds bools, and what is loaded are numbers"
        help = "" if op else "load them to a buffer first, and compare: m = x != 0"
        raise TileError(f"`{name_of(target)}` {what}", span, help=help)
    if of_bools(value, bools):
        return value
    return chosen(_is_true(value, span), Number(1.0, span), Number(0.0, span), span)


def _is_true(value: Any, span: Span | None) -> Compared:
    return Compared("ne", value, Number(0.0, span), span)
