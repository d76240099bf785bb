"""What the words of levels, layouts and orders of tiles mean in a kernel whose places and order are found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from tile_eg.errors import Note, Span, TileError
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.in_order_words import HANDLERS
from tile_eg.frontend.python.values import Buffer, Loop, NewBuffer, as_dtype, describe
from tile_eg.frontend.python.words import handles, known, sizes
from tile_eg.ir import index
from tile_eg.ir.index import Expr
from tile_eg.language.placement import Layout
from tile_eg.ops.types import U8

LEVELS = {"L1": "shared", "UB": "shared", "L0A": "fragment", "L0B": "fragment", "L0C": "fragment"}
"""The scope of a buffer that is searched, by where its author puts it."""


def _alloc(level: str, b: Builder, span: Span, shape: Any, dtype: Any) -> NewBuffer:
    held = U8 if str(dtype) == "bool" and level == "UB" else as_dtype(dtype, span)  # a mask
    return NewBuffer(LEVELS[level], held, sizes(shape, "the size of a buffer", span), level=level)


HANDLERS.update({f"alloc_{'ub' if level == 'UB' else level}": partial(_alloc, level) for level in LEVELS})


# Layouts


def _layout(name: str, b: Builder, span: Span, buffer: Any) -> Layout:
    if not isinstance(buffer, Buffer):
        raise TileError(f"a layout is one of a buffer, not of {describe(buffer)}", span)
    return Layout(name)


for _word, _name in {"make_zn_layout": "zN", "make_nz_layout": "nZ", "make_col_major_layout": "column major"}.items():
    HANDLERS[_word] = partial(_layout, _name)


@handles("annotate_layout")
def _annotate_layout(b: Builder, span: Span, layouts: Any) -> None:
    if not isinstance(layouts, Mapping) or not all(isinstance(k, Buffer) for k in layouts):
        raise TileError("T.annotate_layout takes a dictionary of layouts by buffer", span, help="{a: make_zn_layout(a)}")


# Orders of tiles


@handles("use_swizzle")
def _swizzle(b: Builder, span: Span, at: Any, *sizes_: Any, panel_size: Any, **_: Any) -> Any:
    """The block's index by a new name, which takes the place of the old one in the grid: a permutation of it."""
    if not isinstance(at, Expr):
        b.notes.append(Note("the order of blocks is found: T.use_swizzle changes nothing", span))
        return None
    if _counts_turns(b, at):
        b.notes.append(Note("the order of blocks is found: T.use_swizzle gives the tile's own index", span))
        return at
    name = index.text(at)
    if name not in b.grid or len(b.grid) != 1:
        message = "T.use_swizzle orders the blocks of a grid of one dimension by their index"
        raise TileError(message, span, help="give it that, or i * blocks + cid of tiles that blocks take in turn")
    m, n, _k, block_m, block_n, _off, _dir, _in_loop = sizes_
    rows, columns = (_tiles(*pair, span) for pair in ((m, block_m), (n, block_n)))
    if rows * columns != b.grid[name][1] + 1:
        blocks = b.grid[name][1] + 1
        raise TileError(f"T.use_swizzle orders {rows} x {columns} tiles, and there are {blocks} blocks", span)
    new = b.unique(name)
    b.renew_grid({new: b.grid[name]}, span, "T.use_swizzle")
    b.notes.append(Note("the order of blocks is found: T.use_swizzle gives the block's own index", span))
    return index.var(new)


def _counts_turns(b: Builder, at: Expr) -> bool:
    """Whether an index counts the tiles that blocks take in turn: `i * blocks + cid`."""
    if len(b.grid) != 1:
        return False
    ((block, (_, last)),) = b.grid.items()
    turn = at - index.var(block)
    loops = index.variables(turn)
    return len(loops) == 1 and block not in loops and turn == index.var(min(loops)) * (last + 1)


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
