"""Tiles in strips of 32 bytes, as L1 has them: the blocks of each repeat go to as many strips."""

from __future__ import annotations

from tile_eg.emit.ascend_c.index import EmitError, Scope, block, call, ceil_div, counted, padded_rows
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.machine import BLOCK_BYTES, MAX_REPEAT, REPEAT_BYTES, most_of, strip
from tile_eg.ir.program import Instr, Operand, Tile

REP_STRIDE = most_of("repStride")
BURSTS, BURST, GAP = (most_of(f"DataCopyParams.{field}") for field in ("blockCount", "blockLen", "srcGap"))


def strips(s: Scope, i: Instr) -> list[str]:
    """Copies that take the eight blocks of 256 bytes of a row apart, a repeat a row; bytes are taken two at a time."""
    dst, src = _in_ub(i, i.dst), _in_ub(i, i.srcs[0])
    to, wide = s.buffer(dst), s.buffer(src)
    size = wide.dtype.bytes
    lanes = REPEAT_BYTES // size
    if size > 4:
        raise EmitError(f"{i.op} takes elements of up to 32 bits", i.span)
    params = f"AscendC::CopyRepeatParams({to.pitch * size // BLOCK_BYTES}, 1, 1, {wide.pitch * size // BLOCK_BYTES})"
    rows = s.field(i, "repeat", i.rows, MAX_REPEAT)
    halves = ".ReinterpretCast<int16_t>()" if size == 1 else ""
    ends = _pieces(s, i, dst, src, lanes)
    return [
        line
        for to_at, from_at, n in ends
        for line in call("Copy", to_at + halves, from_at + halves, str(n // 2 if size == 1 else n), rows, params)
    ]


def cast_to_strips(s: Scope, i: Instr, dst: Tile, src: Tile, mode: str) -> list[str]:
    """Casts of 64 columns of f32 each, a repeat a row: their four blocks of 32 bytes go to four strips."""
    to, wide = s.buffer(dst), s.buffer(src)
    lanes = REPEAT_BYTES // wide.dtype.bytes
    apart = to.pitch * to.dtype.bytes // BLOCK_BYTES
    along = s.field(i, "srcRepStride", ix.const(wide.pitch * wide.dtype.bytes // BLOCK_BYTES), REP_STRIDE)
    rows = s.field(i, "repeat", i.rows, MAX_REPEAT)
    params = f"AscendC::UnaryRepeatParams({apart}, 1, 1, {along})"
    ends = _pieces(s, i, dst, src, lanes)
    return [
        line
        for to_at, from_at, n in ends
        for line in call("Cast", to_at, from_at, f"AscendC::RoundMode::{mode}", str(n), rows, params)
    ]


def load_strips(s: Scope, i: Instr, dst: Tile, src: Operand, stride: int | Expr) -> list[str]:
    """A run of bytes for each strip, into L1: in one copy, or in one for each where they lie too far apart for its field."""
    buffer = s.buffer(dst)
    wide, between = strip(buffer.dtype), padded_rows(buffer) - i.rows
    count, rows, gap = ceil_div(i.cols, wide), s.field(i, "blockLen", i.rows, BURST), stride // wide - i.rows
    far = _each_strip(s, dst, src, stride, count, rows) if s.high(gap) > GAP else []
    if far and isinstance(stride, int):
        return far
    apart = s.cpp(gap) if far else s.field(i, "srcGap", gap, GAP), s.field(i, "dstGap", between, GAP)
    params = f"AscendC::DataCopyParams({s.field(i, 'blockCount', count, BURSTS)}, {rows}, {', '.join(apart)})"
    near = call("DataCopy", s.fractal(dst, 0, 0), s.at(src), params)
    return near if not far else [*block(f"if ({s.cpp(stride // wide)} <= {GAP})", near), *block("else", far)]


def _each_strip(s: Scope, dst: Tile, src: Operand, stride: int | Expr, count: Expr, rows: str) -> list[str]:
    """A copy for each strip."""
    wide, n = strip(s.buffer(dst).dtype), s.counter("strip", count)
    to, start = s.fractal(dst, 0, ix.var(n) * wide), s.at(src, ix.var(n) * stride)
    return counted(n, s.limit(count), call("DataCopy", to, start, f"AscendC::DataCopyParams(1, {rows}, 0, 0)"))


def _pieces(s: Scope, i: Instr, dst: Tile, src: Tile, lanes: int) -> list[tuple[str, str, int]]:
    """Where the strips of each piece of up to so many columns begin, and the piece, and how many it has."""
    wide, pitch = strip(s.buffer(dst).dtype), s.buffer(dst).pitch
    if i.cols.value is None or i.cols.value % wide:
        raise EmitError(f"{i.op} to strips takes whole strips of 32 bytes", i.span)
    return [
        (s.at(dst, ix.const(at // wide * pitch)), s.at(src, ix.const(at)), min(lanes, i.cols.value - at))
        for at in range(0, i.cols.value, lanes)
    ]


def _in_ub(i: Instr, o: Operand) -> Tile:
    if isinstance(o, Tile):
        return o
    raise EmitError(f"{i.op} works in UB only, not on tensor {o.tensor}", i.span)
