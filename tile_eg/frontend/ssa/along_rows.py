"""Elements of a tensor that say where the rows of a window lie: how many of them there are, so many rows exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tile_eg.errors import NotSearched, Span
from tile_eg.frontend.ranges import Ranges, extremes
from tile_eg.frontend.read_indices import outside
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import elements_in, with_elements

Index = tuple[Expr, int]
"""An index, and the size of its dimension."""


class Along(NamedTuple):
    """Neighbours in one dimension of a tensor, one for each row of a window: the `first` one's place there, and the `size` of the
    dimension."""

    first: Expr
    size: int


def rows_along(indices: Sequence[Index]) -> Along | None:
    """Where an element, by its indices and the sizes of their dimensions, goes with the row `EACH` along one of these, also if
    others are read at that row; None for others."""
    along = [Along(e - ix.var(ix.EACH), size) for e, size in indices if _goes_with(e)]
    return along[0] if len(along) == 1 and ix.EACH not in ix.variables(along[0].first) else None


def _goes_with(e: Expr) -> bool:
    """Whether an index changes with the row, but for what is read at it."""
    return ix.EACH in ix.variables(with_elements(e, lambda _: ix.ZERO))


def refuse_outside(name: str, pairs: Iterable[tuple[Index, Index]], ranges: Ranges, where: Expr, span: Span | None) -> None:
    """TileError where an index of an element lies outside of its dimension, as it is written and as it is in terms of the block.
    Rows that go on to the end of a dimension are cut there, and what is read is looked at when the kernel runs."""
    pairs = list(pairs)
    along = rows_along([found for _, found in pairs])
    for d, ((written, size), (e, _)) in enumerate(pairs):
        if elements_in(e) or (along and ix.EACH in ix.variables(e)):
            continue
        if ix.variables(e) - ranges.keys():
            raise NotSearched(f"the search has no form for elements of `{name}` that are read one by one as indices", span)
        low, high = extremes(e, ranges, where)
        if low < 0 or high >= size:
            raise outside(f"an index is read outside of `{name}`", d, written, low if low < 0 else high, size, span)
