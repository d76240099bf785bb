"""Windows that begin before their tensor or end behind it, with a number for what is not there: `pad(X[i - 1, j], 0)`.

What there is of one is loaded, and put into a tile of the number. A window of such a window is one of the tensor again, so that
shifted windows of a tile with a border are loads, and a tile that only such windows are taken of is never made.
"""

from __future__ import annotations

from dataclasses import replace

from tile_eg.errors import Span, TileError
from tile_eg.frontend.ranges import extremes
from tile_eg.frontend.ssa import pieces
from tile_eg.frontend.ssa.extents import smaller
from tile_eg.frontend.ssa.positions import Position
from tile_eg.frontend.ssa.tiles import Tiles, tile_shape
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Region, Tensor
from tile_eg.ir.left_padding import padded_on_the_left
from tile_eg.ir.values import Border, Term
from tile_eg.ops.records import record

MOST_LEFT = 32
"""Bytes that a load puts before each row (`DataCopyPadExtParams.leftPadding`)."""


@record
class Padded:
    """A window of `tensor`, whose contents are `version`, with `value` where the tensor has no elements."""

    version: Term
    tensor: Tensor
    region: Region
    value: float

    def part(self, begin: tuple[Expr, Expr], size: tuple[int, int], step: int) -> Padded:
        """The window of this one that begins at a row and a column, with so many of both, its rows `step` apart."""
        row, col = begin
        shift = iter([(row * self.region.step, size[0]), (col, size[1])][2 - len(self.region.shape) :])
        starts, extents = [], []
        for start, extent in zip(self.region.starts, self.region.extents, strict=True):
            away, n = (ix.ZERO, None) if extent is None else next(shift)
            starts.append(start + away)
            extents.append(n)
        step *= self.region.step
        return replace(self, region=replace(self.region, starts=tuple(starts), extents=tuple(extents), step=step))


@record
class Inside:
    """What there is of a window: where it begins, how many rows and columns are missing before that, and whether any is there."""

    region: Region
    above: Expr
    left: Expr
    there: Expr


def window(tiles: Tiles, w: Padded, span: Span | None) -> Term:
    """The tile of such a window; it is made where something reads it as a whole."""
    rows, cols = tile_shape(w.region.shape)
    valid = {"vrows": ix.const(rows), "vcols": ix.const(cols)}
    shape = {"rows": rows, "cols": cols, "dtype": w.tensor.dtype, **valid}
    made = tiles.builder.make("put", (*w.region.starts, w.region.step), w.value, w.version, **shape)
    if span is not None:
        tiles.spans.setdefault(made, span)
    tiles.windows[made], tiles.laid[made] = w, lambda: _made(tiles, w, span)
    return made


def ending(tiles: Tiles, w: Padded, ends: tuple[int, ...], span: Span | None) -> Term:
    """The tile of such a window, which ends where it reaches the end of its tensor in one of these dimensions."""
    r, sizes, (rows, cols) = w.region, w.tensor.shape, tile_shape(w.region.shape)
    along = [d for d, e in enumerate(r.extents) if e is not None]
    valid = dict(zip(along[-2:], (ix.const(rows), ix.const(cols))[-len(along) :], strict=True))
    for d in ends:
        if d in valid:
            step = r.step if len(along) == 2 and d == along[0] else 1
            valid[d] = tiles.valid(r.starts[d], r.extents[d] or 1, sizes[d], tiles.ranges, step)
    vrows, vcols = (ix.ONE, *valid.values())[-2:]
    vrows = tiles.passing(vrows, rows, [(ix.maximum(0, r.starts[d]), sizes[d]) for d in ends if d not in valid])
    whole = window(tiles, w, span)
    return pieces.part(tiles, tiles.as_laid(whole), (rows, cols), (vrows, vcols), span) if ends else whole


def _made(tiles: Tiles, w: Padded, span: Span | None) -> Term:
    found = _inside(tiles, w)
    at = tiles.window(w.tensor, found.region, tiles.ranges, anywhere=True)
    rows = smaller(at.vrows, at.rows - found.above, tiles.ranges) * found.there
    cols = found.left + smaller(at.vcols, at.cols - found.left, tiles.ranges)
    _check_left(tiles, w, found.left, at.cols, span)
    at = replace(at, offset=padded_on_the_left(at.offset, found.left), vrows=tiles.extent(rows), vcols=tiles.extent(cols))
    loaded = tiles.load(w.version, at, w.tensor.dtype, span)
    if (at.vrows.value, at.vcols.value, found.left) == (at.rows, at.cols, ix.ZERO):
        return loaded
    whole = tiles.fill(w.value, (at.rows, at.cols), w.tensor.dtype, span)
    pieces.check_padded(whole, span)
    made = tiles.make(span, "put", found.above * at.cols, whole, loaded, like=whole)
    _note_border(tiles, w, made)
    if found.left == ix.ZERO or w.value == 0:
        return made
    return tiles.choose_at(Position("lt", 0, 1, found.left), (whole, made), span)


def _note_border(tiles: Tiles, w: Padded, made: Term) -> None:
    """Of a tile with rows and columns that lie in the tensor without gaps."""
    along = [d for d, extent in enumerate(w.region.extents) if extent is not None]
    if len(along) == 2 and w.region.step == 1:
        row, column = along
        tiles.borders[made] = Border(w.region.starts, w.tensor.shape, row, column)


def _inside(tiles: Tiles, w: Padded) -> Inside:
    """A plain index outside of its dimension leaves nothing there."""
    starts: list[Expr] = []
    missing: list[Expr] = []
    there, r = ix.ONE, w.region
    for start, extent, size in zip(r.starts, r.extents, w.tensor.shape, strict=True):
        low, high = extremes(start, tiles.ranges, tiles.within)
        if extent is None:
            there = ix.both(there, ix.less(-1, start)) if low < 0 else there
            there = ix.both(there, ix.less(start, size)) if high >= size else there
            start = ix.maximum(0, start) if low < 0 else start
            starts.append(ix.minimum(start, size - 1) if high >= size else start)
            continue
        step = r.step if not missing and len(r.shape) > 1 else 1
        before = ix.maximum(0, (step - 1) - start) // step if low < 0 else ix.ZERO
        missing.append(ix.minimum(extent, before) if -low > extent * step else before)
        starts.append(start + before * step if step > 1 else ix.maximum(0, start) if low < 0 else start)
    above, left = ([ix.ZERO] * 2 + missing)[-2:]
    return Inside(replace(r, starts=tuple(starts)), above, left, there)


def _check_left(tiles: Tiles, w: Padded, left: Expr, cols: int, span: Span | None) -> None:
    most = extremes(left, tiles.ranges, tiles.within)[1]
    if most * w.tensor.dtype.bytes > MOST_LEFT or most >= cols:
        raise TileError(
            f"a row of this window begins {most} elements before those of `{w.tensor.name}`: not supported yet", span,
            help=f"up to {MOST_LEFT // w.tensor.dtype.bytes} of them may be missing there, and of the row one has to be left; "
            "give the tensor a border, or load the rows from their first element on",
        )  # fmt: skip
