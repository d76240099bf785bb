"""Words that make tiles of positions, and those that see the same bits as another element type."""

from __future__ import annotations

from math import prod
from typing import Any

from tile_eg.errors import NotSearched, Span, TileError
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.mask_words import HANDLERS
from tile_eg.frontend.python.values import Buffer, Window, as_dtype, as_region, as_tile, describe, is_index, value_buffer
from tile_eg.frontend.python.words import copied, handles, known, whole_count
from tile_eg.ir import index
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Assign, Binary, Broadcast, Cast, Index, Number, Parallel, Region, TileExpr
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.language.elementwise_words import ROW_EXPANDED
from tile_eg.ops.types import U32

__all__ = ["HANDLERS"]



@handles("tile.createvecindex")
def _vector_index(b: Builder, span: Span, dst: Any, first: Any) -> None:
    _progression(b, span, dst, first, 1, None)


@handles("tile.arith_progression")
def _progression(b: Builder, span: Span, dst: Any, first: Any, step: Any, count: Any) -> None:
    to = as_region(dst, span)
    whole_count(count, to, span)
    if len(to.shape) not in (1, 2) or not isinstance(dst, Buffer):
        raise TileError("positions fill a whole buffer of one or two dimensions", span, help="copy a part of it")
    names = tuple(b.unique(name) for name in ("i", "j")[-len(to.shape) :])
    points = tuple(map(index.var, names))
    at = points[0] if len(points) == 1 else points[0] * to.shape[1] + points[1]
    target = Region(to.name, points, (None,) * len(points), span)
    value = _value(at, first, step, span)
    value = Cast(U32, value, span) if isinstance(value, Index) and value_buffer(dst).dtype == U32 else value
    b.statements.append(Parallel(names, to.shape, (Assign(target, value, span),), span))
    b.written(to.name)


def _value(at: Expr, first: Any, step: Any, span: Span) -> TileExpr:
    """first + step * at: an index where both are whole numbers."""
    if is_index(first) and is_index(step):
        return Index(index.wrap(first) + at * index.wrap(step), span)
    for x in (first, step):
        if not isinstance(x, (int, float)):
            raise TileError(f"a progression takes numbers, not {describe(x)}", span)
    return Binary("add", Binary("mul", Index(at, span), Number(float(step), span), span), Number(float(first), span), span)


@handles("reinterpretcast")
def _reinterpret(b: Builder, span: Span, dst: Any, src: Any, dtype: Any) -> None:
    wanted = as_dtype(dtype, span)
    to, value = copied(src, dst, None, span)
    if not all(isinstance(v, (Buffer, Window)) for v in (dst, src)):
        raise TileError("T.reinterpretcast takes two buffers", span)
    new, old = value_buffer(dst).dtype, value_buffer(src).dtype
    if new != wanted:
        raise TileError(f"{to.name} holds {new}, not {wanted}", span)
    if new.bits != old.bits:
        raise TileError(f"{old} and {new} have bits of another number", span, help="a type of as many bits: uint32 of float32")
    if not (new.whole and old.whole or new == old):
        raise NotSearched(f"the search has no form for the bits of {old} as {new}", span)
    b.assign(to, Cast(new, value, span), span)


def _by_rows(op: str) -> Any:
    def handler(b: Builder, span: Span, dst: Any, src: Any, rows: Any, tmp: Any) -> None:
        to, r = as_region(dst, span), as_region(rows, span)
        count = prod(r.shape)
        if len(to.shape) == 2 and count == to.shape[0] * (lanes := BLOCK_BYTES // value_buffer(rows).dtype.bytes) and lanes > 1:
            return _by_blocks(op, b, span, to, src, r)
        if 1 in r.shape and len(r.shape) == 2:
            r = Region(r.name, r.starts, tuple(None if e == 1 else e for e in r.extents), r.span)
        return b.assign(to, Binary(op, as_tile(src, span), Broadcast(r, 1, span), span), span)

    return handler


def _by_blocks(op: str, b: Builder, span: Span, to: Region, src: Any, r: Region) -> None:
    """Each row with its own 32 bytes, over and over: the columns in parts that are as wide."""
    lanes, value = r.shape[-1], as_tile(src, span)
    if len(r.shape) != 2 or to.shape[1] % lanes or not isinstance(value, Region) or value.shape != to.shape:
        raise TileError(f"{to.name} and {r.name} are tiles whose rows are a multiple of 32 bytes, and of 32 bytes", span)
    for at in range(0, to.shape[1], lanes):
        part, x = (_columns(v, at, lanes) for v in (to, value))
        b.assign(part, Binary(op, x, r, span), span)


def _columns(r: Region, at: int, count: int) -> Region:
    """So many columns of a tile, from a column on."""
    last = max(axis for axis, e in enumerate(r.extents) if e is not None)
    starts = tuple(s + at if axis == last else s for axis, s in enumerate(r.starts))
    return Region(r.name, starts, tuple(count if axis == last else e for axis, e in enumerate(r.extents)), r.span)


def blocks_of(repeat: Any, block_stride: Any, repeat_stride: Any, span: Span) -> int:
    """How many elements become blocks of 32 bytes. TileError unless the blocks lie one behind the other."""
    strides = known(block_stride, "dst_blk_stride", span), known(repeat_stride, "dst_repeat_stride", span)
    if strides != (1, 8):
        raise TileError(f"blocks {strides[0]} and groups {strides[1]} apart are not supported", span, help="strides of 1 and 8")
    return 8 * known(repeat, "repeat_times", span)


@handles("tile.brcb", "tile.brcb_experiment")
def _blocks(b: Builder, span: Span, dst: Any, src: Any, repeat: Any, block_stride: Any, repeat_stride: Any) -> None:
    to, r = as_region(dst, span), as_region(src, span)
    count, lanes = blocks_of(repeat, block_stride, repeat_stride, span), BLOCK_BYTES // value_buffer(src).dtype.bytes
    r = Region(r.name, r.starts, tuple(None if e == 1 else e for e in r.extents), r.span)
    if to.shape != (count, lanes) or r.shape != (count,):
        raise TileError(f"{count} elements become a buffer of {count} x {lanes}, not {to.shape} of {r.shape}", span)
    b.assign(to, Broadcast(r, 1, span), span)


for _op in ROW_EXPANDED:
    HANDLERS[f"tile.row_expand_{_op}_experiment"] = _by_rows(_op)
HANDLERS["tile.row_expand_mul"] = _by_rows("mul")
