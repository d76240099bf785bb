"""Functions without a vector instruction of their own, as the few instructions that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader, on
from tile_eg.frontend.expert.vectors import elementwise, scratch, ub
from tile_eg.frontend.python.index_words import blocks_of
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.language.elementwise_words import ROW_EXPANDED


def _step(r: ExpertReader, span: Span, op: str, to: Place, *srcs: Place, **fields: float) -> None:
    elementwise(r, span, op, to, *srcs, **fields)
    on(r, pr.AIV, pr.PipeBarrier("V", span))


def _beside(r: ExpertReader, x: Place) -> Place:
    """Room for as many elements as a window has."""
    cols = -(-x.cols * x.dtype.bytes // BLOCK_BYTES) * BLOCK_BYTES // x.dtype.bytes
    tile = scratch(r, x.dtype, x.rows, cols)
    return replace(x, operand=tile, whole=cols == x.cols, valid_rows=ix.const(x.rows), valid_cols=ix.const(x.cols))


def _above_one(r: ExpertReader, span: Span, x: Place, factor: float) -> Place:
    """1 + exp(factor * x)."""
    made = _beside(r, x)
    _step(r, span, "vmuls", made, x, scalar=factor)
    _step(r, span, "vexp", made, made)
    _step(r, span, "vadds", made, made, scalar=1.0)
    return made


def _silu(r: ExpertReader, span: Span, to: Place, x: Place) -> None:
    """x / (1 + exp(-x))."""
    elementwise(r, span, "vdiv", to, x, _above_one(r, span, x, -1.0))


def _sigmoid(r: ExpertReader, span: Span, to: Place, x: Place) -> None:
    """1 / (1 + exp(-x))."""
    below = _above_one(r, span, x, -1.0)
    _step(r, span, "vdup", to, scalar=1.0)
    elementwise(r, span, "vdiv", to, to, below)


def _tanh(r: ExpertReader, span: Span, to: Place, x: Place) -> None:
    """1 - 2 / (1 + exp(2 x))."""
    below = _above_one(r, span, x, 2.0)
    _step(r, span, "vdup", to, scalar=-2.0)
    _step(r, span, "vdiv", to, to, below)
    elementwise(r, span, "vadds", to, to, scalar=1.0)


def _by_rows(op: str) -> Callable[..., None]:
    def word(r: ExpertReader, span: Span, dst: Any, src: Any, rows: Any, tmp: Any = None) -> None:
        """Each row with its own element: dst[i, j] = src[i, j] op rows[i], or with its own 32 bytes, over and over."""
        to, x, v = ub(r, dst, span), ub(r, src, span), ub(r, rows, span)
        lanes = BLOCK_BYTES // v.dtype.bytes
        if (to.rows, to.cols) != (x.rows, x.cols) or v.count not in (x.rows, x.rows * lanes):
            raise TileError(f"{x.rows} x {x.cols} elements have {x.rows} rows, and there are {v.count} numbers", span)
        each = v.tile() if v.count > x.rows else _in_blocks(r, span, v, x.rows, tmp)
        sizes = {"rows": ix.const(x.rows), "cols": ix.const(x.cols)}
        r.instr(f"v{op}_rows", to.operand, x.operand, each, form="rows", span=span, **sizes)

    return word


def _in_blocks(r: ExpertReader, span: Span, v: Place, count: int, tmp: Any) -> pr.Tile:
    """Each element as a block of 32 bytes, in the buffer `tmp` where the author has one."""
    lanes, groups = BLOCK_BYTES // v.dtype.bytes, -(-count // 8)
    room = ub(r, tmp, span) if tmp is not None else None
    if room is not None and (room.dtype != v.dtype or not room.whole or room.count < groups * 8 * lanes):
        raise TileError(f"tmp has to hold {groups * 8} x {lanes} elements of {v.dtype} in a row", span)
    each = scratch(r, v.dtype, groups * 8, lanes) if room is None else room.tile()
    r.instr("vbrcb", each, v.operand, rows=ix.const(count), span=span)
    on(r, pr.AIV, pr.PipeBarrier("V", span))
    return each


def _blocks(r: ExpertReader, span: Span, dst: Any, src: Any, repeat: Any, block_stride: Any, repeat_stride: Any) -> None:
    """Each element becomes a block of 32 bytes."""
    to, x = ub(r, dst, span), ub(r, src, span)
    count = blocks_of(repeat, block_stride, repeat_stride, span)
    lanes = BLOCK_BYTES // x.dtype.bytes
    if to.dtype != x.dtype or not (to.whole and x.whole) or x.count < count or to.count < count * lanes:
        what = f"{count} elements of {x.dtype} in a row become {count} x {lanes} of them"
        raise TileError(what, span, help=f"there are {x.count} elements of {x.dtype}, and room for {to.count} of {to.dtype}")
    r.instr("vbrcb", to.operand, x.operand, rows=ix.const(count), span=span)


def _word(made: Callable[..., None]) -> Callable[..., None]:
    def word(r: ExpertReader, span: Span, dst: Any, src: Any) -> None:
        made(r, span, ub(r, dst, span), ub(r, src, span))

    return word


WORDS: dict[str, Callable[..., None]] = {
    "tile.silu": _word(_silu), "tile.sigmoid": _word(_sigmoid), "tile.tanh": _word(_tanh), "tile.row_expand_mul": _by_rows("mul"),
    **{f"tile.row_expand_{op}_experiment": _by_rows(op) for op in ROW_EXPANDED},
    "tile.brcb": _blocks, "tile.brcb_experiment": _blocks,
}  # fmt: skip
