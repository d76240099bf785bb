"""How many trips a loop has: a number, or an index expression where the block decides it."""

from __future__ import annotations

from tile_eg.errors import Span, TileError
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.ranges import Ranges, extremes
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import elements_in

Count = Expr | None
MOST_TRIPS = 1 << 24
"""More trips than a loop has whose bound somebody wrote."""
MAX_STAGES = 8  # of rings: each slot takes a flag id, and there are eight


def depth(stages: int, span: Span | None) -> int:
    """How many slots the author of a loop asks for; 0: as many as the search finds best. TileError beyond what there can be."""
    if not 0 <= stages <= MAX_STAGES:
        raise TileError(f"a loop has up to {MAX_STAGES} stages, not {stages}", span, help="leave it out: the best is found")
    return stages


def trips(start: Expr, end: Expr, step: int, grid: Ranges, span: Span | None) -> tuple[int, Count]:
    """The most trips of a loop from `start` to `end`, and how many they are where the variables of the grid decide it.

    TileError where something else decides it.
    """
    for e in (start, end):
        if unknown := sorted(ix.variables(e) - grid.keys()):
            raise TileError(
                f"the range of a loop has to be known when the block starts, `{index_text(e)}` is not", span,
                help=f"`{unknown[0]}` is not: numbers, the grid's variables and those of serial loops of up to 256 trips are",
            )  # fmt: skip
    count = ix.div(end - start + (step - 1), ix.const(step))
    least, most = extremes(count, grid)
    if least == most:
        return max(0, most), None
    return max(0, most), ix.maximum(0, count) if least < 0 else count


def refuse_unbounded(count: Count, grid: Ranges, span: Span | None) -> None:
    """TileError where a loop runs as often as is read, and nothing says how often that is at the most."""
    if count is not None and not is_bounded(count, grid):
        raise TileError(
            f"nothing says how often this loop runs at the most: {index_text(count)} trips", span,
            help="what is read may be any number; bound it by a size, as in min(length, S)",
        )  # fmt: skip


def is_bounded(end: Expr, ranges: Ranges) -> bool:
    """Whether something bounds the end of a loop; False where what is read may be any number."""
    return not ix.variables(end) <= ranges.keys() or not elements_in(end) or ix.bounds(end, ranges)[1] <= MOST_TRIPS


def least_trips(s: kn.For, grid: Ranges) -> int:
    """The trips that a loop has in every block."""
    return s.extent if s.count is None else extremes(s.count, grid)[0]


def refuse_counted(s: kn.For, what: str) -> None:
    """TileError where the block decides how often a loop of this kind runs."""
    if s.count is not None:
        raise TileError(f"{what} needs a constant range, not {index_text(s.count)} trips", s.span)
