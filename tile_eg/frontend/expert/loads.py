"""The windows of an element loop that only copies, where the loop and the buffer differ in size, as TileLang takes them."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.errors import Note, TileError
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.ir.index import ZERO
from tile_eg.ir.kernel import Assign, Region
from tile_eg.ops.types import Level


def fitted(r: ExpertReader, s: Assign, source: Region, target: Region) -> tuple[Region, Region]:
    """Source and target. What a loop loads beyond the end of a buffer is left out. What it does not load of a buffer in L1
    and nothing else writes becomes 0 where the tensor ends, as in T.copy: a product reads all of it. TileError for what is stored
    from beyond a buffer."""
    for tensor, buffer in ((source, target), (target, source)):
        if tensor.name in r.tensors and buffer.name in r.held:
            tensor, buffer, cut = _clipped(r, tensor, buffer)
            if cut and buffer.name == source.name:
                raise TileError(f"the loop goes beyond the end of {buffer.name}", buffer.span)
            if cut:
                r.notes.append(Note(f"the loop goes beyond the end of {buffer.name}: what lies there is left out", s.span))
            if buffer.name == target.name and r.held[buffer.name].level is Level.L1 and r.writes.count(buffer.name) == 1:
                tensor, buffer = _widened(r, tensor, buffer)
            return (tensor, buffer) if tensor.name == source.name else (buffer, tensor)
    return source, target


def _runs(x: Region) -> list[int]:
    """The dimensions over which a window extends."""
    return [d for d, n in enumerate(x.extents) if n is not None]


def _clipped(r: ExpertReader, tensor: Region, buffer: Region) -> tuple[Region, Region, bool]:
    outer, inner = list(tensor.extents), list(buffer.extents)
    for d, e in zip(_runs(buffer), _runs(tensor), strict=True):
        room = r.held[buffer.name].shape[d] - (buffer.starts[d].value or 0)
        outer[e] = inner[d] = min(inner[d] or 0, room)
    cut = tuple(inner) != buffer.extents
    return replace(tensor, extents=tuple(outer)), replace(buffer, extents=tuple(inner)), cut


def _widened(r: ExpertReader, tensor: Region, buffer: Region) -> tuple[Region, Region]:
    """The last two dimensions to the end of the buffer, where the tensor has no more."""
    shape, size = r.held[buffer.name].shape, r.tensors[tensor.name].shape
    outer, inner = list(tensor.extents), list(buffer.extents)
    for d in (-2, -1):
        if min(len(shape), len(size)) < -d or (outer[d] is None) != (inner[d] is None):
            return tensor, buffer
        ends = tensor.starts[d].value is not None and (tensor.starts[d].value or 0) + (outer[d] or 1) == size[d]
        if buffer.starts[d] == ZERO and ends and (inner[d] or 1) < shape[d]:
            outer[d] = inner[d] = shape[d]
    if sum(n is not None for n in outer) < 2:
        return tensor, buffer
    return replace(tensor, extents=tuple(outer)), replace(buffer, extents=tuple(inner))
