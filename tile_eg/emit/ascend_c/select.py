"""Choices among elements and tiles of positions as Ascend C: op -> the lines of its text.

A comparison gives one bit an element. In the `flat` form it goes over whole rounds of 256 bytes into `scratch`, and one selection
takes all bits. In the `rows` form each chunk of a row is compared into the register, under a mask of its valid elements, and
selected by it.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_eg.emit.ascend_c.index import EmitError, Scope, block, call, counted, number
from tile_eg.emit.ascend_c.scalar import formula_text, scalar_operand
from tile_eg.emit.ascend_c.vector import BARRIER, by_chunks, checked, tile
from tile_eg.ir import index as ix
from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.machine import BLOCK_BYTES, REPEAT_BYTES
from tile_eg.ir.program import COMPARE, Instr, Tile
from tile_eg.ops.types import F16, F32, I32

CONTIGUOUS = "AscendC::BinaryRepeatParams(1, 1, 1, 8, 8, 8)"
ONE_BLOCK = "AscendC::BinaryRepeatParams(1, 1, 0, 8, 8, 0)"
"""The second source is one block of 32 bytes for all blocks of the first."""


def choose(s: Scope, i: Instr) -> list[str]:
    """dst = x where a is to b, or to a number, as the instruction's name says, else y, or another number."""
    dst, *sources = (tile(i, o) for o in (i.dst, *i.srcs))
    checked(s, i, [sources[0], *sources[1 : None if _masks(i) else -2]] if not _masks(i) else [dst, *sources])
    if i.scratch is None:
        raise EmitError(f"{i.op} needs scratch for the bits of the comparison", i.span)
    a, x, y = sources[0], sources[-1 if _masks(i) else -2], None if _masks(i) else sources[-1]
    return _flat(s, i, dst, a, x, y) if i.form == "flat" else _by_rows(s, i, dst, a, x, y)


_FLOAT = {2: F16, 4: F32}


def _behind(s: Scope, t: Tile) -> str:
    """What stands behind a tensor whose elements are chosen: a selection moves the bits of floats."""
    dtype = s.buffer(t).dtype
    return f".ReinterpretCast<{_FLOAT[dtype.bytes].ascend}>()" if dtype.whole else ""


def _masks(i: Instr) -> bool:
    """Whether what is not chosen becomes a number."""
    return i.op.startswith("vmask")


def _constant(i: Instr) -> bool:
    """Whether it is compared with a number."""
    return not i.op.startswith("vchoose_")


def _mode(i: Instr) -> str:
    return f"AscendC::CMPMODE::{i.op.rpartition('_')[2].upper()}"


def _flat(s: Scope, i: Instr, dst: Tile, a: Tile, x: Tile, y: Tile | None) -> list[str]:
    pitches = {s.buffer(t).pitch for t in (dst, a, *(tile(i, o) for o in i.srcs[1:]))}
    if i.rows != ONE and len(pitches) > 1:
        raise EmitError(f"{i.op}: the flat form needs operands of one pitch", i.span)
    dtype = s.buffer(a).dtype
    elements = i.cols if i.rows == ONE else i.rows * pitches.pop()
    if (elements % (REPEAT_BYTES // dtype.bytes)).value != 0:
        raise EmitError(f"{i.op}: a comparison works on whole rounds of 256 bytes", i.span)
    count = s.field(i, "count", elements, 2**31 - 1)
    bits = f"{s.at(i.scratch)}.ReinterpretCast<uint8_t>()"  # type: ignore[arg-type]
    if _constant(i):
        compared = call("CompareScalar", bits, s.at(a), scalar_operand(s, i, dtype), _mode(i), count)
    else:
        compared = call("Compare", bits, s.at(a), s.at(i.srcs[1]), _mode(i), count)
    to, kept = (f"{s.at(t)}{_behind(s, t)}" for t in (dst, x))
    other, mode = (f"{s.at(y)}{_behind(s, y)}", "TENSOR_TENSOR") if y else (number(i.other, s.buffer(dst).dtype), "TENSOR_SCALAR")
    select = call("Select", to, bits, kept, other, f"AscendC::SELMODE::VSEL_{mode}_MODE", count)
    return [*compared, BARRIER, *select]


def _by_rows(s: Scope, i: Instr, dst: Tile, a: Tile, x: Tile, y: Tile | None) -> list[str]:
    dtype, kept = s.buffer(a).dtype, s.buffer(dst).dtype
    lanes = REPEAT_BYTES // max(dtype.bytes, kept.bytes)
    first, second = _blocks(s, i)
    behind = _behind(s, dst)
    r = s.fresh("row")
    s.ranges[r] = (0, max(0, s.high(i.rows) - 1))
    row = ix.var(r) if i.rows != ONE else ZERO
    to = lambda t, at: s.at(t, row * s.buffer(t).pitch + at)  # noqa: E731

    def one(at: Expr, mask: Expr) -> list[str]:
        right, params = (first, ONE_BLOCK) if _constant(i) else (to(i.srcs[1], at), CONTIGUOUS)
        compared = call("Compare", to(a, at), right, _mode(i), s.cpp(mask), params)
        other, params = (to(y, at) + behind, CONTIGUOUS) if y else (second, ONE_BLOCK)
        select = f"Select<{_FLOAT[kept.bytes].ascend}, AscendC::SELMODE::VSEL_CMPMASK_SPR>"
        return [*compared, BARRIER, *call(select, to(dst, at) + behind, to(x, at) + behind, other, "1", params)]

    body = by_chunks(s, i.cols, lanes, ZERO, one)
    lines = body if i.rows == ONE else counted(r, s.limit(i.rows), body)
    numbers = call("Duplicate", first, scalar_operand(s, i, dtype), str(BLOCK_BYTES // dtype.bytes)) if _constant(i) else []
    if y is None:
        numbers += call("Duplicate", second, number(i.other, kept), str(BLOCK_BYTES // kept.bytes))
    return [*numbers, BARRIER, *lines] if numbers else lines


def _blocks(s: Scope, i: Instr) -> tuple[str, str]:
    """The two blocks of the scratch that hold the numbers: as wide as what is compared, and as what is chosen."""
    dtype, kept = s.buffer(tile(i, i.srcs[0])).dtype, s.dtype(i.dst)
    assert i.scratch is not None
    second = s.at(i.scratch, BLOCK_BYTES // dtype.bytes)
    return s.at(i.scratch), second if kept == dtype else f"{second}.ReinterpretCast<{kept.ascend}>()"


def by_bits(s: Scope, i: Instr) -> list[str]:
    """A selection for each row, by its bits, which begin with a block of 32 bytes."""
    dst, bits, x, *rest = (tile(i, o) for o in (i.dst, *i.srcs))
    pitch = s.buffer(bits).pitch
    if i.rows != ONE and pitch % BLOCK_BYTES:
        raise EmitError(f"{i.op}: rows of bits do not start at 32-byte multiples", i.span)
    r = s.fresh("row")
    s.ranges[r] = (0, max(0, s.high(i.rows) - 1))
    row = ix.var(r) if i.rows != ONE else ZERO
    to, kept, *others = (s.at(t, row * s.buffer(t).pitch) + _behind(s, t) for t in (dst, x, *rest))
    other = others[0] if others else number(i.other, _FLOAT[s.buffer(dst).dtype.bytes])
    mask = s.at(bits, row * pitch) + (".ReinterpretCast<uint8_t>()" if s.buffer(bits).dtype.name != "u8" else "")
    mode = f"AscendC::SELMODE::VSEL_TENSOR_{'TENSOR' if others else 'SCALAR'}_MODE"
    body = [f"AscendC::Select({to}, {mask},", f"    {kept}, {other},", f"    {mode}, {s.cpp(i.cols)});"]
    return body if i.rows == ONE else counted(r, s.limit(i.rows), body)


def compare(s: Scope, i: Instr) -> list[str]:
    """A comparison of one run of elements into bits."""
    bits, a = f"{s.at(i.dst)}.ReinterpretCast<uint8_t>()", tile(i, i.srcs[0])
    checked(s, i, [a])
    count = s.field(i, "count", i.cols, 2**31 - 1)
    if len(i.srcs) == 1:
        return call("CompareScalar", bits, s.at(a), scalar_operand(s, i, s.buffer(a).dtype), _mode(i), count)
    return call("Compare", bits, s.at(a), s.at(i.srcs[1]), _mode(i), count)


def pack(s: Scope, i: Instr) -> list[str]:
    """A comparison of each row with 0, whose bits begin with a block of 32 bytes."""
    dst, src = tile(i, i.dst), tile(i, i.srcs[0])
    dtype, pitch = s.buffer(src).dtype, s.buffer(dst).pitch
    if (i.rows != ONE and pitch % BLOCK_BYTES) or (8 * i.cols % (REPEAT_BYTES // dtype.bytes)).value != 0:
        raise EmitError(f"{i.op} works on whole rounds of 256 bytes into rows of 32-byte multiples", i.span)
    r = s.fresh("row")
    s.ranges[r] = (0, max(0, s.high(i.rows) - 1))
    row = ix.var(r) if i.rows != ONE else ZERO
    to, of = s.at(dst, row * pitch), s.at(src, row * s.buffer(src).pitch)
    body = call("CompareScalar", to, of, number(0.0, dtype), "AscendC::CMPMODE::NE", s.cpp(8 * i.cols))
    return body if i.rows == ONE else counted(r, s.limit(i.rows), body)


def ramp(s: Scope, i: Instr) -> list[str]:
    """The first row as an index times its step, and each further row from it: whole numbers, exact in i32, in f32 up to 2^24, in
    f16 up to 2048."""
    dst = tile(i, i.dst)
    dtype = s.buffer(dst).dtype
    if dtype not in (F16, F32, I32):
        raise EmitError("vramp makes f16, f32 and i32 only", i.span)
    down, right = i.steps
    typed = f"static_cast<{dtype.ascend}>"
    cols, first = s.cpp(i.cols), f"{typed}({formula_text(s, i.value) if i.value else s.cpp(i.bound)})"
    if not right:
        lines = call("Duplicate", s.at(dst), first, cols)
    elif right == 1:
        lines = call("CreateVecIndex", s.at(dst), first, cols)
    else:
        lines = [*call("CreateVecIndex", s.at(dst), number(0, dtype), cols), BARRIER,
                 *call("Muls", s.at(dst), s.at(dst), number(right, dtype), cols), BARRIER,
                 *call("Adds", s.at(dst), s.at(dst), first, cols)]  # fmt: skip
    if i.rows == ONE:
        return lines
    r = s.fresh("row")
    s.ranges[r] = (1, max(1, s.high(i.rows) - 1))
    row = s.at(dst, ix.var(r) * s.buffer(dst).pitch)
    step = call("Adds", row, s.at(dst), f"{typed}({s.cpp(ix.var(r) * down)})", cols)
    return [*lines, BARRIER, *block(f"for (int32_t {r} = 1; {r} < {s.limit(i.rows)}; ++{r})", step)]


SELECTIONS: dict[str, Callable[[Scope, Instr], list[str]]] = {
    **{f"v{kind}_{op}": choose for kind in ("choose", "chooses", "mask") for op in COMPARE},
    **{f"vcompare_{op}": compare for op in COMPARE},
    "vramp": ramp,
    "vbitselect": by_bits,
    "vpack": pack,
}
