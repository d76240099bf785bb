"""Bytes in UB as Ascend C: vector instructions take two of them at a time, as 16 bits."""

from __future__ import annotations

from tile_eg.emit.ascend_c.element_types import BY_BITS
from tile_eg.emit.ascend_c.index import EmitError, Scope, call, counted
from tile_eg.emit.ascend_c.scalar import scalar_operand
from tile_eg.ir import index as ix
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.index import ONE, ZERO
from tile_eg.ir.program import Instr, Tile
from tile_eg.ops.types import I32, NARROW, DType

MOST = 2**31 - 1


def bits_of_bytes(s: Scope, name: str | None, tiles: list[Tile]) -> bool:
    """Whether this instruction, on these operands, is one on the bits of bytes."""
    return name in BY_BITS and all(s.buffer(t).dtype.bytes == 1 for t in tiles)


def by_two_bytes(s: Scope, i: Instr, name: str, tiles: list[Tile]) -> list[str]:
    """And, Or or Not of bytes that lie in one run."""
    pitches = {s.buffer(t).pitch for t in tiles}
    if i.form != "flat" or (i.rows != ONE and len(pitches) > 1):
        raise EmitError(f"{i.op} takes bytes that lie in one run", i.span)
    elements = i.cols if i.rows == ONE else i.rows * pitches.pop()
    if (elements % 2).value != 0:
        raise EmitError(f"{i.op} takes an even number of bytes", i.span)
    return call(name, *(f"{s.at(t)}.ReinterpretCast<uint16_t>()" for t in tiles), s.field(i, "count", elements // 2, MOST))


def bytes_moved(s: Scope, i: Instr, dst: Tile, src: Tile) -> list[str]:
    """The first columns of each row, or whole rows, with their padding."""
    pitch, cols = s.buffer(dst).pitch, i.cols.value
    if i.rows != ONE and cols is not None and cols % 2 == 0 and cols < pitch:
        r = s.counter("row", i.rows)
        to, of = (f"{s.at(t, ix.var(r) * s.buffer(t).pitch)}.ReinterpretCast<int16_t>()" for t in (dst, src))
        return counted(r, s.cpp(i.rows), call("Adds", to, of, "int16_t(0)", str(cols // 2)))
    if i.rows != ONE and (pitch != s.buffer(src).pitch or pitch % 2):
        raise EmitError(f"{i.op}: bytes are copied between rows of one length", i.span)
    count = (i.cols + 1) // 2 if i.rows == ONE else i.rows * (pitch // 2)
    to, of = (f"{s.at(t)}.ReinterpretCast<int16_t>()" for t in (dst, src))
    return call("Adds", to, of, "int16_t(0)", s.field(i, "count", count, MOST))


def _byte(value: float, dtype: DType) -> int:
    """The bits of a number that an element type of 8 bits holds."""
    if dtype not in NARROW:
        return int(value) & 0xFF
    import numpy as np

    return int(np.array([value]).astype(numpy_dtype(dtype)).view(np.uint8)[0])


def bytes_filled(s: Scope, i: Instr, dst: Tile) -> list[str]:
    """There is no Duplicate of one byte: behind an odd number of them, one more is filled, which a row has room for."""
    pitch, cols = s.buffer(dst).pitch, i.cols.value
    cols = cols if cols is None else cols + cols % 2
    if cols is None or (i.rows != ONE and cols > pitch):
        raise EmitError(f"{i.op} fills an even number of bytes in a row", i.span)
    value = f"uint16_t({_byte(i.scalar, s.buffer(dst).dtype) * 0x101})"
    if s.buffer(dst).dtype in NARROW and (i.value is not None or i.bound != ZERO):
        raise EmitError(f"{i.op}: a float of 8 bits is filled with a number that is known when the kernel is compiled", i.span)
    if i.value is not None or i.bound != ZERO:
        value = f"static_cast<uint16_t>(static_cast<uint8_t>({scalar_operand(s, i, I32)}) * 257)"
    if i.rows != ONE and cols < pitch:
        r = s.counter("row", i.rows)
        to = f"{s.at(dst, ix.var(r) * pitch)}.ReinterpretCast<uint16_t>()"
        return counted(r, s.cpp(i.rows), call("Duplicate", to, value, str(cols // 2)))
    count = s.field(i, "count", i.rows * cols // 2, MOST)
    return call("Duplicate", f"{s.at(dst)}.ReinterpretCast<uint16_t>()", value, count)
