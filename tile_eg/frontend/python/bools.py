"""Tensors and buffers of bools: bytes that are 0 or 1, and conditions where they are looked at."""

from __future__ import annotations

from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.conditions import Compared, chosen, of_elements
from tile_eg.frontend.python.values import Buffer, Window, as_tile, region, value_buffer
from tile_eg.ir.kernel import Number, TileExpr
from tile_eg.ops.types import spelled


def is_bool(dtype: Any) -> bool:
    """Whether an author's dtype is that of bools."""
    return spelled(dtype).removeprefix("torch.") in ("bool", "bool_")


def holds_bools(value: Any) -> bool:
    return isinstance(value, Buffer | Window) and value_buffer(value).truth


def is_truth(value: Any) -> bool:
    """Whether a value is one of bools."""
    return of_elements(value) or isinstance(value, bool) or holds_bools(value)


def as_condition(value: Any, span: Span | None) -> Any:
    """What a branch asks: of one element of a buffer, whether it is not 0; anything else as it is."""
    if isinstance(value, Window) and value.is_point:
        return Compared("ne", region(value), Number(0.0, span), span)
    return truth_of(value, span)


def truth_of(value: Any, span: Span | None) -> Any:
    """Bools that a buffer holds as a condition; anything else as it is."""
    return Compared("ne", as_tile(value, span), Number(0.0, span), span) if holds_bools(value) else value


def as_stored(place: Any, value: Any, span: Span | None) -> TileExpr:
    """What is stored of a value: in a place of bools 1 where it is not 0, else 0."""
    x = as_tile(value, span)
    if not holds_bools(place) or is_truth(value):
        return x
    if isinstance(x, Number):
        return Number(float(x.value != 0), span)
    return chosen(Compared("ne", x, Number(0.0, span), span), Number(1.0, span), Number(0.0, span), span)


def check_copied(src: Any, dst: Any, span: Span | None) -> None:
    """TileError where numbers are copied to where bools are."""
    if holds_bools(dst) and not is_truth(src):
        help = "compare them: m[i, j] = x[i, j] != 0 in T.Parallel"
        raise TileError(f"`{value_buffer(dst).name}` holds bools, and what is copied are numbers", span, help=help)
