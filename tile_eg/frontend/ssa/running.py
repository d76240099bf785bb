"""Running sums and products of whole tiles.

Down the columns they are those of 2 rows, then of 4, then of 8 and so on, each from two of before. Along the rows as well, by
elements that are gathered from before; of long rows only those of 16 elements each, as columns, and then those of their totals.
"""

from __future__ import annotations

from math import prod

from tile_eg.errors import Span
from tile_eg.frontend.ssa.pieces import Window, aligned, laid, offsets, part, replaced, taken, within
from tile_eg.frontend.ssa.positions import Place, Position
from tile_eg.frontend.ssa.tiles import Tiles, valid_cols, valid_rows
from tile_eg.ir import index as ix
from tile_eg.ir.kernel import Whole
from tile_eg.ir.values import Term
from tile_eg.ops.records import record
from tile_eg.ops.types import BF16, F16, F32
from tile_eg.ops.whole_tiles import TURNED

LONG = 32
"""Groups of 16 elements in a row from which on these are summed apart: of fewer, the sums of their totals take longer than the
gathers that are saved, at 5 elements a cycle."""
BLOCK = 8
"""Floats in 32 bytes."""


def running(tiles: Tiles, t: Term, e: Whole) -> Term:
    """Sums or products over what comes before, an element's own included, in f32."""
    if t.dtype in (F16, BF16):
        return tiles.cast(running(tiles, tiles.cast(t, F32, e.span), e), t.dtype, e.span)
    work = _Running(tiles, *{"cumsum": ("add", 0.0), "cumprod": ("mul", 1.0)}[e.op], bool(e.numbers[1]), e.span)
    whole = laid(tiles, t, work.nothing, t.rows, e.span)
    made = work.down(whole) if e.numbers[0] == 0 else work.along(whole)
    return part(tiles, made, (t.rows, t.cols), (valid_rows(t), valid_cols(t)), e.span)


@record
class _Running:
    """`op` over the rows or columns of tiles, from the last one on if it goes `back`; `nothing` changes nothing of it."""

    tiles: Tiles
    op: str
    nothing: float
    back: bool
    span: Span | None

    def down(self, t: Term) -> Term:
        """Of the rows of a tile."""
        step = 1
        while step < t.rows:
            t = self._joined(t, step, True) if aligned(ix.const(step * t.cols), t) else self._gathered(t, step, True)
            step *= 2
        return t

    def along(self, t: Term) -> Term:
        """Of the columns of a tile."""
        if t.cols >= LONG * TURNED:
            return self._in_groups(t)
        step = 1
        while step < t.cols:
            t = self._joined(t, step, False) if aligned(ix.const(step), t) else self._gathered(t, step, False)
            step *= 2
        return t

    def _in_groups(self, t: Term) -> Term:
        """Each group of 16 elements becomes a column; what is before a group is joined with all of it."""
        whole = self._in_squares(t)
        by_row = (whole.rows, whole.cols // TURNED)
        groups = prod(by_row)
        own = self.down(self._as("transpose", whole, (groups, TURNED), (TURNED, groups)))
        last = Window(ix.const(0 if self.back else TURNED - 1), ix.ZERO, 1, groups)
        totals = taken(self.tiles, own, last, "the tile", self.span)
        before = self.along(self._before(self._as("reshape", totals, by_row, by_row), 1, False))
        line = self._as("reshape", before, (groups, 0), (1, groups))
        joined = self.tiles.binary(self.op, own, self.tiles.broadcast(line, 0, TURNED, self.span), self.span)
        made = self._as("transpose", joined, (TURNED, groups), (whole.rows, whole.cols))
        return part(self.tiles, made, (t.rows, t.cols), (ix.const(t.rows), ix.const(t.cols)), self.span)

    def _in_squares(self, t: Term) -> Term:
        """The tile, with what changes nothing around it: rows of groups of 16 whose totals fill blocks of 32 bytes, and as many
        groups as make whole squares."""
        cols = -(-t.cols // (BLOCK * TURNED)) * BLOCK * TURNED
        rows = t.rows if t.rows * cols % TURNED**2 == 0 else t.rows + 1
        if (rows, cols) == (t.rows, t.cols):
            return t
        around = self.tiles.fill(self.nothing, (rows, cols), F32, self.span)
        return self.tiles.make(self.span, "put", ix.ZERO, around, t, like=around)

    def _as(self, op: str, t: Term, numbers: tuple[int, int], shape: tuple[int, int]) -> Term:
        """What an operation makes of all elements of a tile, which lie in one run."""
        rows, cols = shape
        valid = {"vrows": ix.const(rows), "vcols": ix.const(cols)}
        return self.tiles.make(self.span, "whole", op, *numbers, t, like=t, rows=rows, cols=cols, **valid)

    def _joined(self, t: Term, step: int, down: bool) -> Term:
        """The tile in which each element, but the first ones, is joined with the one `step` before: windows that are copied."""
        rows, cols = (t.rows - step, t.cols) if down else (t.rows, t.cols - step)
        first, last = (ix.ZERO, ix.ZERO), (ix.const(step), ix.ZERO) if down else (ix.ZERO, ix.const(step))
        own, other = (Window(*at, rows, cols) for at in ((first, last) if self.back else (last, first)))
        x, y = (taken(self.tiles, t, w, "the tile", self.span) for w in (own, other))
        return replaced(self.tiles, t, self.tiles.binary(self.op, x, y, self.span), own, "the tile", self.span)

    def _gathered(self, t: Term, step: int, down: bool) -> Term:
        """The tile joined with what is so many elements before."""
        return self.tiles.binary(self.op, t, self._before(t, step, down), self.span)

    def _before(self, t: Term, step: int, down: bool) -> Term:
        """For each element the one that is so many before it, and a number where there is none."""
        tiles, away, shape = self.tiles, step if self.back else -step, (t.rows, t.cols)
        size = t.dtype.bytes  # type: ignore[union-attr]
        first = ix.const(size * away * (t.cols if down else 1))
        at = tiles.index(Place(t.cols * size, size, first), shape, self.span)
        at = offsets(tiles, within(tiles, at, (t.rows * t.cols - 1) * size, self.span), self.span)
        before = tiles.make(self.span, "whole", "gather", 0, 0, t, at, like=t)
        sign, bound = (1, (t.rows if down else t.cols) - step) if self.back else (-1, 1 - step)
        holds = Position("lt", sign if down else 0, 0 if down else sign, ix.const(bound))
        return tiles.choose_at(holds, (before, tiles.fill(self.nothing, shape, F32, self.span)), self.span)
