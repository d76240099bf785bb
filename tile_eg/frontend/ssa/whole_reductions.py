"""Reductions of whole numbers, exact, which no instruction does: the halves of a tile are joined until one number is left of each
row or column."""

from __future__ import annotations

from tile_eg.errors import Span
from tile_eg.frontend.ssa.pieces import BLOCK_BYTES, Window, blocks, check_dense, may_be_padded, padded, part, taken
from tile_eg.frontend.ssa.tiles import Tiles
from tile_eg.ir import index as ix
from tile_eg.ir.values import Term
from tile_eg.ops.elementwise import REDUCE, neutral


def reduced(tiles: Tiles, op: str, x: Term, axis: int, span: Span | None) -> Term:
    """A vector of one number for each row (axis 1) or column (axis 0) of a tile of 16 or 32 bits."""
    assert x.dtype is not None
    nothing = neutral(op, x.dtype)
    cols, lanes = x.cols, BLOCK_BYTES // x.dtype.bytes
    if not may_be_padded(x):  # rows with gaps: in blocks of 32 bytes
        count = power_of_two(x.rows) if axis == 0 else max(lanes, power_of_two(cols))
        x = _put(tiles, x, (count, blocks(cols, x.dtype)) if axis == 0 else (x.rows, count), nothing, span)
    else:
        x = padded(tiles, x, nothing, span)
        check_dense(x, "what is reduced", span)
        count = power_of_two(x.rows if axis == 0 else cols)
        x = _within(tiles, x, (count, cols) if axis == 0 else (x.rows, count), nothing, span)
    halves = _rows if axis == 0 else _columns
    while count > 1:
        x, count = tiles.binary(REDUCE[op].joins, *halves(tiles, x, span), span), count // 2
    return part(tiles, x, (1, cols), (ix.ONE, ix.const(cols)), span) if axis == 0 else x


def power_of_two(n: int) -> int:
    """The least one that is not below n."""
    return 1 << (n - 1).bit_length()


def _within(tiles: Tiles, x: Term, size: tuple[int, int], nothing: float, span: Span | None) -> Term:
    """The tile in one of another size; what stands beside it takes no part."""
    return x if size == (x.rows, x.cols) else _put(tiles, x, size, nothing, span)


def _put(tiles: Tiles, x: Term, size: tuple[int, int], nothing: float, span: Span | None) -> Term:
    whole = tiles.fill(nothing, size, x.dtype, span)  # type: ignore[arg-type]
    return tiles.make(span, "put", ix.ZERO, whole, x, like=whole)


def _rows(tiles: Tiles, x: Term, span: Span | None) -> tuple[Term, Term]:
    """The upper and the lower half of a tile."""
    half = x.rows // 2
    upper, lower = (taken(tiles, x, Window(ix.const(at), ix.ZERO, half, x.cols), "what is reduced", span) for at in (0, half))
    return upper, lower


def _columns(tiles: Tiles, x: Term, span: Span | None) -> tuple[Term, Term]:
    """Every second element of what lies in one run, and its neighbours."""
    count = x.rows * x.cols // 2
    shape = {"rows": 1, "cols": count, "dtype": x.dtype, "vrows": ix.ONE, "vcols": ix.const(count)}
    even, odd = (tiles.make(span, "whole", "every", first, 2, x, **shape) for first in (0, 1))  # type: ignore[arg-type]
    return even, odd
