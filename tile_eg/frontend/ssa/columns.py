"""A column of a tensor: loaded and stored as a tile of one element a row, which is a vector in between.

The sum of a row is its one element. Bytes and numbers of 16 bits are that exactly in f32; 32 bits are joined with zeros.
"""

from __future__ import annotations

from tile_eg.errors import NotSearched, Span
from tile_eg.frontend.ssa.tiles import Tiles
from tile_eg.frontend.ssa.whole_reductions import reduced
from tile_eg.ir.values import Term
from tile_eg.ops.types import F32, I16, I32, U16, U32, WHOLE


def taken(tiles: Tiles, loaded: Term, span: Span | None) -> Term:
    """The vector of a tile of one column."""
    if loaded.dtype is U16:  # its bits are a number that is cast
        return tiles.cast(taken(tiles, tiles.cast(loaded, I16, span), span), U16, span)
    if loaded.dtype in (I32, U32):
        return reduced(tiles, "sum", loaded, 1, span)
    wide = tiles.cast(loaded, F32, span) if loaded.dtype in WHOLE else loaded
    found = tiles.reduce("sum", wide, 1, span)
    return tiles.cast(found, loaded.dtype, span) if loaded.dtype in WHOLE else found


def stored(tiles: Tiles, vector: Term, span: Span | None) -> Term:
    """A vector as a tile of one column. NotSearched of bytes: stores of neighbouring ones have no order."""
    if vector.dtype is not None and vector.dtype.bits < 16:
        help = "store whole rows, with the column in its place; or keep 16 bits, and cast where rows are whole"
        message = f"a column of {vector.dtype} is loaded, and not stored: its neighbours would be written with it"
        raise NotSearched(message, span, help=help)
    if vector.dtype is U16:
        return tiles.cast(stored(tiles, tiles.cast(vector, I16, span), span), U16, span)
    if vector.dtype not in WHOLE or vector.dtype in (I32, U32):
        return tiles.broadcast(vector, 1, 1, span)
    return tiles.cast(tiles.broadcast(tiles.cast(vector, F32, span), 1, 1, span), vector.dtype, span)
