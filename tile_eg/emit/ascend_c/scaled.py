"""Products with scales on architecture 3510: the scales of an operand by pairs, into L1 and along with it into L0, and MmadMx.

Fields follow `kernel_struct_data_copy.h` and `kernel_struct_mm.h` and the vendor's sample `mmad_mx`. In GM a row of scales lies
along the depth; in L1 they lie in fractals of 16 rows and two scales, 32 bytes each, row by row (Zz). L0A_MX and L0B_MX have an
operand's scales at a sixteenth of its address.
"""

from __future__ import annotations

from tile_eg.emit.ascend_c.index import EmitError, Scope, call, ceil_div, padded_rows
from tile_eg.ir.index import ZERO
from tile_eg.ir.machine import most_of
from tile_eg.ir.program import Gm, Instr, Tile
from tile_eg.ops.types import SCALED_DEPTH, fractal_depth

PAIR = 2
"""Scales that are moved as one number of 16 bits."""
ROWS, STRIDE = most_of("Dn2NzParams.dValue"), 2**32 - 1
STEP, DISTANCE = most_of("LoadData2DMxParams.xStep"), most_of("LoadData2DMxParams.srcStride")


def gm_to_l1(s: Scope, i: Instr) -> list[str]:
    """One DN2NZ copy of pairs: a row of the result for each pair along the depth, a column for each row of the operand."""
    src, dst = i.srcs[0], i.dst
    assert isinstance(dst, Tile)
    if not isinstance(src, Gm):
        raise EmitError(f"{i.op} loads scales from a tensor alone", i.span)
    n, d = s.field(i, "nValue", i.cols // PAIR, most_of("Dn2NzParams.nValue")), s.field(i, "dValue", i.rows, ROWS)
    stride = s.field(i, "srcDValue", src.stride // PAIR, STRIDE)
    params = f"AscendC::Dn2NzParams(1, {n}, {d}, 0, {stride}, {s.buffer(dst).cols // PAIR}, 1, 0)"
    return call("DataCopy", f"{_place(s, dst)}.ReinterpretCast<uint16_t>()", s.pairs(src), params)


def _place(s: Scope, t: Tile) -> str:
    """Where a window of scales begins in L1: 16 rows have a fractal for each pair."""
    return s.slot(t, t.row // 16 * (s.buffer(t).cols // PAIR * 32) + t.col // PAIR * 32)


def load_l0(s: Scope, i: Instr) -> list[str]:
    """One LoadData for a part of an operand and its scales, the rows of both along m or n."""
    (src, scales), dst = i.srcs, i.dst
    assert isinstance(src, Tile) and isinstance(scales, Tile) and isinstance(dst, Tile)
    if dst.row != ZERO or dst.col != ZERO:
        raise EmitError(f"{i.op} fills {dst.buffer} from its start only", i.span)
    of = s.buffer(dst).dtype
    across, pairs = ceil_div(i.rows if i.op == "l1_to_l0a" else i.cols, 16), ceil_div(i.depth, SCALED_DEPTH)
    m, k = s.field(i, "mStep", across, STEP), s.field(i, "kStep", ceil_div(i.depth, fractal_depth(of)), STEP)
    params = f"AscendC::LoadData2DParamsV2(0, 0, {m}, {k}, {padded_rows(s.buffer(src)) // 16}, {m}, false, 0)"
    x, y = s.field(i, "xStep", across, STEP), s.field(i, "yStep", pairs, STEP)
    stride = s.field(i, "srcStride", s.buffer(scales).cols // PAIR, DISTANCE)
    params_mx = f"AscendC::LoadData2DMxParams(0, 0, {x}, {y}, {stride}, {y})"
    source = s.fractal(src, 0, 0) + (f".ReinterpretCast<{of.ascend}>()" if s.buffer(src).dtype.ascend != of.ascend else "")
    return call("LoadData", s.slot(dst), source, _place(s, scales), params, params_mx)

