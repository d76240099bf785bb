"""The parts of elements as Ascend C: the bytes of numbers of 16 bits, and the numbers of 4 bits of bytes."""

from __future__ import annotations

from tile_eg.emit.ascend_c.index import EmitError, Scope, call, counted
from tile_eg.emit.ascend_c.vector import tile
from tile_eg.ir import index as ix
from tile_eg.ir.index import ONE
from tile_eg.ir.program import Instr
from tile_eg.ops.types import F16


def bytes_of(s: Scope, i: Instr) -> list[str]:
    """The same bits with another number of elements."""
    dst, src = tile(i, i.dst), tile(i, i.srcs[0])
    if s.buffer(src).dtype.bytes != 2 or s.buffer(dst).dtype.bytes != 1:
        raise EmitError(f"{i.op} takes elements of 16 bits", i.span)
    if i.rows != ONE and i.form == "rows":
        r = s.counter("row", i.rows)
        to, of = (s.at(t, ix.var(r) * s.buffer(t).pitch) for t in (dst, src))
        row = s.field(i, "count", i.cols // 2, 2**31 - 1)
        return counted(r, s.cpp(i.rows), call("Adds", f"{to}.ReinterpretCast<int16_t>()", of, "int16_t(0)", row))
    if i.rows != ONE and s.buffer(dst).pitch != 2 * s.buffer(src).pitch:
        raise EmitError(f"{i.op}: rows lie as far apart on both sides", i.span)
    count = i.cols // 2 if i.rows == ONE else i.rows * s.buffer(src).pitch
    return call("Adds", f"{s.at(dst)}.ReinterpretCast<int16_t>()", s.at(src), "int16_t(0)", s.field(i, "count", count, 2**31 - 1))


def nibbles(s: Scope, i: Instr) -> list[str]:
    """A Cast of int4b_t: of all rows where they lie in one run, else of each."""
    dst, src = tile(i, i.dst), tile(i, i.srcs[0])
    if s.buffer(src).dtype.bytes != 1 or s.buffer(dst).dtype is not F16:
        raise EmitError(f"{i.op} takes bytes, and makes numbers of f16", i.span)
    none = "AscendC::RoundMode::CAST_NONE"
    cast = lambda to, of, n: call("Cast", to, f"{of}.ReinterpretCast<AscendC::int4b_t>()", none, n)  # noqa: E731
    if i.rows == ONE or (i.form == "flat" and s.buffer(dst).pitch == 2 * s.buffer(src).pitch):
        count = i.cols if i.rows == ONE else i.rows * s.buffer(dst).pitch
        return cast(s.at(dst), s.at(src), s.field(i, "count", count, 2**31 - 1))
    r = s.counter("row", i.rows)
    to, of = (s.at(t, ix.var(r) * s.buffer(t).pitch) for t in (dst, src))
    return counted(r, s.limit(i.rows), cast(to, of, s.field(i, "count", i.cols, 2**31 - 1)))


PARTS = {"vbytes": bytes_of, "vnibbles": nibbles}
