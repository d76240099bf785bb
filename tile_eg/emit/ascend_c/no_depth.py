"""Products of operands that may have no depth, as a length that is read may be 0."""

from __future__ import annotations

from tile_eg.emit.ascend_c.index import Scope, block, call
from tile_eg.ir.program import Instr, Tile


def or_zeros(s: Scope, i: Instr, lines: list[str]) -> list[str]:
    """A load of an operand of which nothing may be there: then the product is done with zeros in its place."""
    dst = i.dst
    assert isinstance(dst, Tile)
    b, at = s.buffer(dst), s.slot(dst)
    if b.dtype.bytes == 1:
        at += ".ReinterpretCast<half>()"
    dtype = "half" if b.dtype.bytes == 1 else b.dtype.ascend
    fractals = s.field(i, "blockNum", b.slot_bytes // 512, 32767)
    params = f"AscendC::InitConstValueParams<{dtype}>(1, {fractals}, 0, static_cast<{dtype}>(0))"
    loaded = block(f"if ({s.limit(i.depth)} > 0)", lines)
    return [*loaded[:-1], *block("} else", call("InitConstValue", at, params))]
