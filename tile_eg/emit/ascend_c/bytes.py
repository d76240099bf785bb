"""Bytes in UB as Ascend C: vector instructions take two of them at a time, as 16 bits."""

from __future__ import annotations

from tile_eg.emit.ascend_c.element_types import BY_BITS
from tile_eg.emit.ascend_c.index import EmitError, Scope, call
from tile_eg.ir.index import ONE
from tile_eg.ir.program import Instr, Tile

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
    """The whole of each row: the padding goes along."""
    pitch = s.buffer(dst).pitch
    if pitch != s.buffer(src).pitch or pitch % 2:
        raise EmitError(f"{i.op}: bytes are copied between rows of one length", i.span)
    count = (i.cols + 1) // 2 if i.rows == ONE else i.rows * (pitch // 2)
    to, of = (f"{s.at(t)}.ReinterpretCast<int16_t>()" for t in (dst, src))
    return call("Adds", to, of, "int16_t(0)", s.field(i, "count", count, MOST))


def bytes_filled(s: Scope, i: Instr, dst: Tile) -> list[str]:
    """There is no Duplicate of one byte."""
    if i.cols.value is None or i.cols.value % 2:
        raise EmitError(f"{i.op} fills an even number of bytes in a row", i.span)
    value = (int(i.scalar) & 0xFF) * 0x101
    count = s.field(i, "count", i.rows * i.cols // 2, MOST)
    return call("Duplicate", f"{s.at(dst)}.ReinterpretCast<uint16_t>()", f"uint16_t({value})", count)
