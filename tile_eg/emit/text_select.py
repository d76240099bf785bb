"""Choices among elements and tiles of positions as Ascend C: op -> the lines of its text.

A comparison gives one bit an element. In the `flat` form it goes over whole rounds of 256 bytes into `scratch`, and one selection
takes all bits. In the `rows` form each chunk of a row is compared into the register, under a mask of its valid elements, and
selected by it.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_eg.emit.text_index import EmitError, Scope, block, call, counted, number
from tile_eg.emit.text_vector import BARRIER, BLOCK_BYTES, REGISTER, by_chunks, checked, tile
from tile_eg.ir import index as ix
from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.program import COMPARE, Instr, Tile
from tile_eg.ir.types import F32, DType

CONTIGUOUS = "AscendC::BinaryRepeatParams(1, 1, 1, 8, 8, 8)"
ONE_BLOCK = "AscendC::BinaryRepeatParams(1, 1, 0, 8, 8, 0)"
"""The second source is one block of 32 bytes for all blocks of the first."""


def choose(s: Scope, i: Instr) -> list[str]:
    """dst = x where a is to b, or to a number, as the instruction's name says, else y."""
    a, *_, x, y = (tile(i, o) for o in i.srcs)
    dst = tile(i, i.dst)
    checked(s, i, [dst, a, x, y])
    if i.scratch is None:
        raise EmitError(f"{i.op} needs scratch for the bits of the comparison", i.span)
    return _flat(s, i, dst, a, x, y) if i.form == "flat" else _by_rows(s, i, dst, a, x, y)


def _mode(i: Instr) -> str:
    return f"AscendC::CMPMODE::{i.op.rpartition('_')[2].upper()}"


def _against(s: Scope, i: Instr, dtype: DType) -> str:
    """The number that is compared with: a constant, or an index as the element type has it."""
    if i.bound == ZERO:
        return number(i.scalar, dtype)
    whole = f"static_cast<float>({s.cpp(i.bound)})"
    return whole if dtype is F32 else f"static_cast<{dtype.ascend}>({whole})"


def _flat(s: Scope, i: Instr, dst: Tile, a: Tile, x: Tile, y: Tile) -> list[str]:
    pitches = {s.buffer(t).pitch for t in (dst, a, *(tile(i, o) for o in i.srcs[1:]))}
    if i.rows != ONE and len(pitches) > 1:
        raise EmitError(f"{i.op}: the flat form needs operands of one pitch", i.span)
    dtype = s.buffer(a).dtype
    elements = i.cols if i.rows == ONE else i.rows * pitches.pop()
    if (elements % (REGISTER // dtype.bytes)).value != 0:
        raise EmitError(f"{i.op}: a comparison works on whole rounds of 256 bytes", i.span)
    count = s.field(i, "count", elements, 2**31 - 1)
    bits = f"{s.at(i.scratch)}.ReinterpretCast<uint8_t>()"  # type: ignore[arg-type]
    if i.op.startswith("vchooses"):
        compared = call("CompareScalar", bits, s.at(a), _against(s, i, dtype), _mode(i), count)
    else:
        compared = call("Compare", bits, s.at(a), s.at(i.srcs[1]), _mode(i), count)
    select = call("Select", s.at(dst), bits, s.at(x), s.at(y), "AscendC::SELMODE::VSEL_TENSOR_TENSOR_MODE", count)
    return [*compared, BARRIER, *select]


def _by_rows(s: Scope, i: Instr, dst: Tile, a: Tile, x: Tile, y: Tile) -> list[str]:
    dtype, kept = s.buffer(a).dtype, s.buffer(dst).dtype
    lanes = REGISTER // max(dtype.bytes, kept.bytes)
    constant = i.op.startswith("vchooses")
    other, params = (i.scratch, ONE_BLOCK) if constant else (tile(i, i.srcs[1]), CONTIGUOUS)
    assert other is not None
    r = s.fresh("row")
    s.ranges[r] = (0, max(0, s.high(i.rows) - 1))
    row = ix.var(r) if i.rows != ONE else ZERO

    def one(at: Expr, mask: Expr) -> list[str]:
        left, picked, left_out, into = (s.at(t, row * s.buffer(t).pitch + at) for t in (a, x, y, dst))
        right = s.at(other) if constant else s.at(other, row * s.buffer(other).pitch + at)
        select = f"Select<{kept.ascend}, AscendC::SELMODE::VSEL_CMPMASK_SPR>"
        return [*call("Compare", left, right, _mode(i), s.cpp(mask), params), BARRIER,
                *call(select, into, picked, left_out, "1", CONTIGUOUS)]  # fmt: skip

    body = by_chunks(s, i.cols, lanes, ZERO, one)
    lines = body if i.rows == ONE else counted(r, s.cpp(i.rows), body)
    if not constant:
        return lines
    return [*call("Duplicate", s.at(other), _against(s, i, dtype), str(BLOCK_BYTES // dtype.bytes)), BARRIER, *lines]


def ramp(s: Scope, i: Instr) -> list[str]:
    """The first row as an index times its step, and each further row from it: whole numbers, exact in f32 up to 2^24."""
    dst = tile(i, i.dst)
    if s.buffer(dst).dtype is not F32:
        raise EmitError("vramp makes f32 only", i.span)
    down, right = i.steps
    cols, first = s.cpp(i.cols), f"static_cast<float>({s.cpp(i.bound)})"
    if not right:
        lines = call("Duplicate", s.at(dst), first, cols)
    elif right == 1:
        lines = call("CreateVecIndex", s.at(dst), first, cols)
    else:
        lines = [*call("CreateVecIndex", s.at(dst), "0.0f", cols), BARRIER,
                 *call("Muls", s.at(dst), s.at(dst), number(right, F32), cols), BARRIER,
                 *call("Adds", s.at(dst), s.at(dst), first, cols)]  # fmt: skip
    if i.rows == ONE:
        return lines
    r = s.fresh("row")
    s.ranges[r] = (1, max(1, s.high(i.rows) - 1))
    row = s.at(dst, ix.var(r) * s.buffer(dst).pitch)
    step = call("Adds", row, s.at(dst), f"static_cast<float>({s.cpp(ix.var(r) * down)})", cols)
    return [*lines, BARRIER, *block(f"for (int32_t {r} = 1; {r} < {s.cpp(i.rows)}; ++{r})", step)]


SELECTIONS: dict[str, Callable[[Scope, Instr], list[str]]] = {
    **{f"v{kind}_{op}": choose for kind in ("choose", "chooses") for op in COMPARE},
    "vramp": ramp,
}
