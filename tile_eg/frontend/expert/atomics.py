"""`T.atomic_add`, `T.atomic_max` and `T.atomic_min` in a kernel that is kept: stores that join two numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.expert.moves import added, from_ub
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import SHARED, ExpertReader
from tile_eg.frontend.expert.unaligned import put, room
from tile_eg.frontend.python.bools import as_stored
from tile_eg.frontend.python.values import NewBuffer, Window, as_region, as_tile, is_one_number
from tile_eg.frontend.python.words import added_extents, copied
from tile_eg.ir.index import ZERO
from tile_eg.ir.kernel import Region
from tile_eg.ops.types import DType, Level


def _atomic(kind: str, r: ExpertReader, span: Span, dst: Any, src: Any, size: Any = None, **_: Any) -> None:
    """dst += src, or the larger or smaller of both, where dst is a window of a tensor."""
    if not r.in_parallel and size is None and isinstance(dst, Window) and dst.is_point and is_one_number(src, span):
        src = _kept(r, span, src, dst.buffer.dtype)
    src, dst, size = added_extents(r, src, dst, size, span)
    if r.in_parallel:
        r.assign(as_region(dst, span), as_tile(src, span), span, atomic=kind)
    elif size is None and all(isinstance(v, Window) and v.is_point for v in (dst, src)):
        source, target = r.place(as_tile(src, span), span, Level.UB), r.place(as_region(dst, span), span, Level.GM)
        _element(r, span, source, target, kind)
    else:
        added(r, span, *copied(src, dst, size, span), atomic=kind)


def _kept(r: ExpertReader, span: Span, value: Any, dtype: DType) -> Window:
    """A number in a buffer of its own."""
    name = r.unique("number")
    r.allocate(name, NewBuffer(SHARED, dtype, (1,)), span)
    buffer = r.local.pop(name)
    place = Window(buffer, (ZERO,), span)
    r.assign(Region(buffer.name, (ZERO,), (None,), span), as_stored(place, value, span), span)
    return place


def _element(r: ExpertReader, span: Span, source: Place, target: Place, kind: str) -> None:
    """Adds one element, from a place of its own that begins a block."""
    made = room(r, source)
    put(r, span, made.tile(), source.tile())
    from_ub(r, span, made, target, {}, atomic=kind)


WORDS: dict[str, Callable[..., Any]] = {
    f"{prefix}atomic_{kind}": partial(_atomic, kind) for kind in ("add", "max", "min") for prefix in ("", "tile.")
}
