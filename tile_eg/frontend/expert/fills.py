"""Buffers that become one number in a kernel that is kept: in UB by an instruction, in L0C by a product of zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.products import cleared
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.expert.vectors import filled, ub
from tile_eg.frontend.python.bools import holds_bools
from tile_eg.frontend.python.values import Buffer, Window, as_region
from tile_eg.ops.types import Level


def _fill(r: ExpertReader, span: Span, buffer: Any, value: Any = 0.0) -> None:
    if isinstance(buffer, Buffer | Window) and r.level_of(buffer) is Level.L0C:
        return _zeros(r, span, buffer, value)
    if holds_bools(buffer) and isinstance(value, int | float):
        value = value != 0
    return filled(r, span, ub(r, buffer, span), value)


def _zeros(r: ExpertReader, span: Span, buffer: Buffer | Window, value: Any) -> None:
    """TileError for a part of a buffer of L0C, and for other numbers."""
    region = as_region(buffer, span)
    place, shape = r.place(region, span, Level.L0C), r.held[region.name].shape
    part = (place.rows, place.cols) != shape[-2:] or any(n != 1 for n in shape[:-2])
    if part or isinstance(value, bool) or not isinstance(value, int | float) or value != 0:
        r.used_by_vectors(region.name)
        what = "a part of a buffer of L0C is not filled" if part else "a buffer of L0C is filled with zeros alone"
        raise TileError(what, span, help="its first product overwrites it: T.mma(..., init=True)")
    cleared(r, span, region)


WORDS: dict[str, Callable[..., Any]] = {"fill": _fill, "clear": _fill, "tile.fill": _fill, "tile.clear": _fill}
