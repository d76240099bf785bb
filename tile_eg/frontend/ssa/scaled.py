"""Operands of products with scales as values: the rows of both, and what the cube core asks of where they end and lie."""

from __future__ import annotations

from tile_eg.errors import Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.ssa.tiles import Tiles, valid_cols
from tile_eg.ir.index import EACH, variables
from tile_eg.ir.multiples import is_multiple, times
from tile_eg.ir.values import Term
from tile_eg.ops.types import SCALE_BLOCK, SCALED, SCALED_DEPTH, DType


def scaled(tiles: Tiles, x: Term, scale: Term, packed: DType | None, span: Span | None) -> Term:
    """x with its scales; `packed`: the floats of 4 bits of which each byte of x holds two."""
    assert x.dtype is not None
    each = 2 if packed else 1
    cols = tiles.extent(times(valid_cols(x), each))
    if not is_multiple(cols, SCALED_DEPTH):
        message = f"a product with scales goes along K in steps of {SCALED_DEPTH}, and {index_text(cols)} elements are left here"
        raise TileError(message, span, help=f"let K be a multiple of {SCALED_DEPTH}: zeros behind the operands change nothing")
    _check_loaded(scale, span)
    return tiles.make(span, "scaled", x, scale, like=x, cols=x.cols * each, dtype=SCALED[packed or x.dtype], vcols=cols)


def _check_loaded(scale: Term, span: Span | None) -> None:
    """TileError unless scales are loaded by pairs along their rows: L0A_MX and L0B_MX hold them so."""
    if scale.op != "load":
        help = "load them where the product stands: " + hint("sa = SA[i, k]", "T.copy(SA[i, k], sa)", span)
        raise TileError("the scales of a product are loaded from a tensor, as a whole tile", span, help=help)
    _, offset, stride = scale.args
    if EACH in variables(offset):
        help = "gather the rows of both in a kernel before this one"
        raise TileError("the rows of scales lie one behind the other in their tensor, and these are gathered", span, help=help)
    if stride % 2 or not is_multiple(offset, 2):
        what = f"their rows begin {stride} elements apart" if stride % 2 else f"these begin at element {index_text(offset)}"
        help = f"let a row of the operand in its tensor be a multiple of {2 * SCALE_BLOCK} elements long, and begin at one"
        raise TileError(f"two scales of a row are loaded together, and {what}", span, help=help)
