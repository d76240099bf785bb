"""Buffers of which a kernel writes the first elements alone, as many as it finds out, `a[:n, :] = ...`: others do not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile_eg.errors import NotSearched, Span
from tile_eg.frontend.python.values import nodes
from tile_eg.ir.index import ZERO
from tile_eg.ir.kernel import Region, TileExpr


class FirstElements:
    """Which buffers are written so, and which as a whole: what such a write leaves of an older value has no form."""

    def __init__(self) -> None:
        self.begun: set[str] = set()
        self.whole: set[str] = set()

    def written(self, target: Region, shapes: Mapping[str, Sequence[int]], value: TileExpr, span: Span | None) -> Region:
        """The target of an assignment: a buffer as a whole where its first elements are meant, and the value has no more.

        `shapes` are those of the buffers. NotSearched for other parts whose length only the kernel knows, also of what is read,
        and where elements behind them have a value.
        """
        read = [n for n in nodes(value) if isinstance(n, Region) and n.name in shapes]
        if part := next((n for n in read if any(n.counts) and not _is_first(n, shapes[n.name])), None):
            raise _no_form(part, span)
        name = target.name
        if name not in shapes:
            return target
        if not any(target.counts):
            if name in self.begun and name not in {n.name for n in read}:
                raise _no_form(target, span)
            self.whole.add(name)
            return target
        if name in self.whole or not _is_first(target, shapes[name]) or not _ends_so(value, target):
            raise _no_form(target, span)
        self.begun.add(name)
        return replace(target, counts=())


def _is_first(r: Region, shape: Sequence[int]) -> bool:
    return all(start == ZERO for start in r.starts) and tuple(e or 1 for e in r.extents) == shape


def _ends_so(value: TileExpr, target: Region) -> bool:
    """Whether a value has as many elements, in each dimension that is counted: one of its operands ends there."""
    ends = {c for n in nodes(value) if isinstance(n, Region) for c in n.counts if c is not None}
    return all(c in ends for c in target.counts if c is not None)


def _no_form(r: Region, span: Span | None) -> NotSearched:
    return NotSearched(f"the search has no form for this part of `{r.name}`, whose length varies", r.span or span)
