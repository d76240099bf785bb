"""What the words of levels, layouts and orders of tiles mean in a kernel whose places and order are found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tile_eg.errors import Note, Span, TileError
from tile_eg.frontend.python.bools import is_bool
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.in_order_words import HANDLERS
from tile_eg.frontend.python.tile_order import Bands, Order
from tile_eg.frontend.python.values import Buffer, Loop, NewBuffer, as_dtype, describe
from tile_eg.frontend.python.words import handles, known, sizes
from tile_eg.ir import index
from tile_eg.ir.index import Expr
from tile_eg.language.gpu import HINTS
from tile_eg.language.placement import Layout
from tile_eg.ops.types import U8

LEVELS = {"L1": "shared", "UB": "shared", "L0A": "fragment", "L0B": "fragment", "L0C": "fragment"}
"""The scope of a buffer that is searched, by where its author puts it."""


def _alloc(level: str, b: Builder, span: Span, shape: Any, dtype: Any) -> NewBuffer:
    truth = is_bool(dtype) and level == "UB"
    held = U8 if truth else as_dtype(dtype, span)
    return NewBuffer(LEVELS[level], held, sizes(shape, "the size of a buffer", span), level=level, truth=truth)


HANDLERS.update({f"alloc_{'ub' if level == 'UB' else level}": partial(_alloc, level) for level in LEVELS})


# Layouts


def _layout(name: str, b: Builder, span: Span, buffer: Any) -> Layout:
    if not isinstance(buffer, Buffer):
        raise TileError(f"a layout is one of a buffer, not of {describe(buffer)}", span)
    return Layout(name)


for _word, _name in {"make_zn_layout": "zN", "make_nz_layout": "nZ", "make_col_major_layout": "column major"}.items():
    HANDLERS[_word] = partial(_layout, _name)


@handles("make_swizzled_layout", "Layout", "Fragment")
def _gpu_layout(b: Builder, span: Span, *_: Any, **__: Any) -> Layout:
    return Layout("of a GPU")


@handles(*HINTS)
def _hint(b: Builder, span: Span, *_: Any, **__: Any) -> None:
    """What a GPU's compiler is told changes no result."""


@handles("annotate_layout")
def _annotate_layout(b: Builder, span: Span, layouts: Any) -> None:
    if not isinstance(layouts, Mapping) or not all(isinstance(k, Buffer) for k in layouts):
        raise TileError("T.annotate_layout takes a dictionary of layouts by buffer", span, help="{a: make_zn_layout(a)}")
    for buffer in (k for k in layouts if k.scope == "tensor"):
        what = f"`{buffer.name}` lies in GM row by row, and T.annotate_layout gives it another order"
        raise TileError(what, span, help="leave it out, here and in the kernel that reads the tensor")


# Orders of tiles


@handles("use_swizzle")
def _swizzle(b: Builder, span: Span, at: Any, *sizes_: Any, panel_size: Any, **_: Any) -> Any:
    """The tile at a place of the order, by a name of its own until all is known that goes by the place (`in_some_order`)."""
    if not isinstance(at, Expr):
        b.notes.append(Note("the order of blocks is found: T.use_swizzle changes nothing", span))
        return None
    bands = bands_of(sizes_, span)
    name = index.text(at)
    if name in b.grid and len(b.grid) == 1 and bands.tiles != b.grid[name][1] + 1:
        blocks = b.grid[name][1] + 1
        raise TileError(f"T.use_swizzle orders {bands.rows} x {bands.cols} tiles, and there are {blocks} blocks", span)
    for order in b.orders:
        if (order.at, order.bands) == (at, bands):
            return index.var(order.name)
    b.orders.append(Order(b.unique("tile"), at, bands, span))
    return index.var(b.orders[-1].name)


def bands_of(sizes_: Sequence[Any], span: Span) -> Bands:
    """The order of M, N, K, block_M, block_N, off, dir."""
    m, n, _k, block_m, block_n, offset, along, *_ = sizes_
    rows, columns = (_tiles(*pair, span) for pair in ((m, block_m), (n, block_n)))
    return Bands(rows, columns, known(offset, "the width of a band", span), known(along, "the direction of bands", span))


def _tiles(size: Any, block: Any, span: Span) -> int:
    return -(-known(size, "a size of T.use_swizzle", span) // known(block, "a block of T.use_swizzle", span))


@handles("Persistent")
def _persistent(b: Builder, span: Span, domain: Any, wave_size: Any, at: Any, group_size: Any) -> Loop:
    extents, wave = sizes(domain, "an extent of T.Persistent", span), known(wave_size, "the number of blocks", span)
    name = index.text(at) if isinstance(at, Expr) else ""
    if name not in b.grid or len(b.grid) != 1:
        message = "T.Persistent takes the index of the block, in a grid of one dimension"
        raise TileError(message, span, help="with T.Kernel(n) as cid")
    if wave != b.grid[name][1] + 1:
        message = f"T.Persistent shares {math.prod(extents)} tiles among {wave} blocks, and there are {b.grid[name][1] + 1}"
        raise TileError(message, span, help="launch as many blocks: T.Kernel(n) and T.Persistent(domain, n, cid)")
    return Loop("persistent", (0,) * len(extents), extents)


__all__ = ["HANDLERS"]
