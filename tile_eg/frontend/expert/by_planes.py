"""Copies, in a kernel that is kept, whose window of a tensor has more than rows and columns that lie apart: plane by plane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_eg.errors import Span
from tile_eg.frontend.expert.places import rows_of
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.expert.unaligned import loop
from tile_eg.frontend.ranges import at_most
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Region

Copied = Callable[[Region, Region], None]


def planes_of(r: ExpertReader, to: Region, value: Region) -> int:
    """How many planes a copy is done in, one by one; 0 where its windows are rows and columns, or do not lie in planes alike."""
    far = to if to.name in r.tensors else value
    near = value if far is to else to
    shape = [n for n in near.shape if n != 1]
    if far.name not in r.tensors or near.name not in r.held or len(shape) < 3 or _in_rows(r, far, shape):
        return 0
    axis, alike = _first(far), shape == [n for n in far.shape if n != 1]
    count = far.extents[axis] or 1
    start = r.unit.settled(r, far.starts[axis], far.span)
    inside = at_most(start, r.tensors[far.name].shape[axis] - count, r.ranges, r.within)
    return count if alike and inside and not any(far.counts) and not any(near.counts) else 0


def _in_rows(r: ExpertReader, far: Region, shape: list[int]) -> bool:
    """Whether a window of a tensor is such rows as a buffer of this shape has, or one run of elements."""
    t, axes = r.tensors[far.name], rows_of(r.tensors[far.name], far, shape[-1])
    return len(axes) == 2 and axes[1] == shape[-1] or len(rows_of(t, far, most=1)) < 2


def each_plane(r: ExpertReader, span: Span, to: Region, value: Region, planes: int, copied: Copied) -> None:
    """The copy, plane by plane."""
    loop(r, span, "h", planes, planes, lambda h: copied(_plane(to, h), _plane(value, h)))


def _first(r: Region) -> int:
    """The first dimension over which a window extends."""
    return next(axis for axis, n in enumerate(r.extents) if n is not None and n > 1)


def _plane(r: Region, h: Expr) -> Region:
    axis = _first(r)
    starts = (*r.starts[:axis], r.starts[axis] + h, *r.starts[axis + 1 :])
    return replace(r, starts=starts, extents=(*r.extents[:axis], None, *r.extents[axis + 1 :]))
