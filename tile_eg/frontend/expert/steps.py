"""A window in another element type, in rows of its own: in one cast or in several."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.errors import Span
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader, on
from tile_eg.frontend.expert.unaligned import room
from tile_eg.frontend.expert.vectors import cast
from tile_eg.frontend.ssa.steps import between
from tile_eg.ir import program as pr
from tile_eg.ops.types import DType


def cast_to(r: ExpertReader, span: Span, x: Place, dtype: DType) -> Place:
    """The window in this element type; no more of it exists than before."""
    if x.dtype == dtype:
        return x
    wide = room_in(r, x, dtype)
    cast_into(r, span, wide, x)
    return replace(wide, valid_rows=x.valid_rows, valid_cols=x.valid_cols)


def cast_into(r: ExpertReader, span: Span, to: Place, x: Place) -> None:
    """to = x in its element type."""
    step = None if x.dtype == to.dtype else between(x.dtype, to.dtype)
    if step is not None:
        made = room_in(r, x, step)
        cast_into(r, span, made, x)
        x = made
    on(r, pr.AIV, pr.PipeBarrier("V", span))
    cast(r, span, to, x)


def room_in(r: ExpertReader, p: Place, dtype: DType, number: int = 0) -> Place:
    """Room for as many elements of this type, of which all exist; that of another number is other room."""
    return room(r, replace(p, dtype=dtype), number)
