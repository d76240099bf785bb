"""Outputs that a kernel stores in pieces whose places are elements of its inputs: the rows of a group, or of a sequence."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tile_eg.ir.index import Interval, bounds, from_terms, terms_of, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Alloc, Assign, For, Kernel, Region, statements
from tile_eg.ir.seen import indexed
from tile_eg.ops.records import record


@record
class Pieces:
    """`size` elements of a dimension in `count` pieces of at most `most`. Where each begins is an element of the tensor `begins`;
    how long it is, of `lengths`, or (None) it ends where the next one begins."""

    begins: str
    lengths: str | None
    size: int
    count: int
    most: int


def pieces_of(kernel: Kernel) -> Iterator[Pieces]:
    """The pieces in which outputs are stored, by the first store of each."""
    shapes = {t.name: indexed(t).shape for t in kernel.tensors}
    found = list(statements(kernel.body))
    buffers = {s.name for s in found if isinstance(s, Alloc)}
    ranges: dict[str, Interval] = {name: (0, extent - 1) for name, extent in kernel.grid}
    ranges |= {s.var: (s.start, s.start + s.extent - 1) for s in found if isinstance(s, For)}
    seen: set[str] = set()
    for s in found:
        if not isinstance(s, Assign) or s.atomic or s.target.name not in shapes:
            continue
        for axis, size in enumerate(shapes[s.target.name]):
            pieces = _along(s.target, axis, size, shapes, ranges)
            if pieces and pieces.begins not in seen and not buffers & {pieces.begins, pieces.lengths}:
                seen.add(pieces.begins)
                yield pieces


def _along(
    window: Region, axis: int, size: int, shapes: dict[str, tuple[int, ...]], ranges: dict[str, Interval]
) -> Pieces | None:
    """The pieces of one dimension of a stored window, where its place and its length are elements of tensors."""
    count, extent = window.counts[axis] if window.counts else None, window.extents[axis]
    terms = terms_of(window.starts[axis])
    reads = [e for e, n in terms.items() if e.op == "read" and n == 1 and e.args[0] in shapes]
    others = elements_in(count) - {*reads} if count is not None else frozenset()
    if count is None or extent is None or len(reads) != 1 or len(others) != 1:
        return None
    (begin,), (other,) = reads, others
    behind = from_terms({e: n for e, n in terms.items() if e != begin})
    if elements_in(behind) or not variables(behind) <= ranges.keys():
        return None
    most, held = bounds(behind, ranges)[1] + extent, prod(shapes[begin.args[0]])
    if other.args[0] == begin.args[0] and other.args[1] == begin.args[1] + 1:
        return Pieces(begin.args[0], None, size, held - 1, most)
    if other.args[0] in shapes and other.args[1] == begin.args[1] and prod(shapes[other.args[0]]) == held:
        return Pieces(begin.args[0], other.args[0], size, held, most)
    return None
