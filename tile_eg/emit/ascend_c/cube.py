"""Copies and cube instructions as Ascend C: op -> the lines of its text.

Field orders and limits follow the public headers (`kernel_struct_data_copy.h`, `kernel_struct_mm.h`, `kernel_struct_fixpipe.h`)
and the pages DataCopy, DataCopyPad, LoadData, Mmad and Fixpipe; the L1 -> L0 recipes those of the sample `load_data_l12l0`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_eg.emit.ascend_c import scaled
from tile_eg.emit.ascend_c.direct import DIRECT, fixpipe_part, packed_rows, scale_bits
from tile_eg.emit.ascend_c.index import (
    EmitError,
    Scope,
    adds_nothing,
    block,
    call,
    ceil_div,
    counted,
    number,
    padded_rows,
    round_up,
)
from tile_eg.emit.ascend_c.padded import padded
from tile_eg.emit.ascend_c.strips import load_strips
from tile_eg.ir import index as ix
from tile_eg.ir.index import EACH, ONE, ZERO, Expr
from tile_eg.ir.machine import FIXPIPE_ND_ROWS, most_of
from tile_eg.ir.program import Gm, Instr, Operand, Tile
from tile_eg.ops.records import record
from tile_eg.ops.types import BF16, F16, F32, I8, I32, Level

Writer = Callable[[Scope, Instr, Expr], list[str]]
FIELD8, FIELD16, FIELD32 = 255, 65535, 2**32 - 1
ND2NZ_ROWS, MMAD = most_of("Nd2NzParams.nValue"), most_of("MmadParams.m")
BURSTS, BURST_BYTES = most_of("DataCopyExtParams.blockCount"), most_of("DataCopyExtParams.blockLen")
LOAD_3D = 32767
QUANTISED = {
    (F32, F32): "NoQuant", (F32, F16): "F322F16", (F32, BF16): "F322BF16", (I32, I32): "NoQuant", (I32, F16): "DEQF16",
    (I32, I8): "REQ8", (F32, I8): "QF322B8_PRE",
}  # fmt: skip
"""The mode of a Fixpipe by its element types."""
SCALED = ("DEQF16", "REQ8", "QF322B8_PRE")
"""The modes that multiply by a number."""


def stride_of(s: Scope, o: Operand) -> int | Expr:
    """Elements between two rows of a GM or workspace window."""
    return o.stride if isinstance(o, Gm) else s.buffer(o).pitch


def tile(i: Instr, o: Operand) -> Tile:
    if isinstance(o, Tile):
        return o
    raise EmitError(f"{i.op} cannot reach the GM tensor {o.tensor}", i.span)


def anywhere(o: Operand) -> bool:
    """Whether the rows of a window lie anywhere in a tensor."""
    return isinstance(o, Gm) and EACH in ix.variables(o.offset)


def row_by_row(s: Scope, i: Instr, write: Callable[[Scope, Instr], list[str]]) -> list[str]:
    """A copy of its own for each row of a window whose rows lie anywhere."""
    r = ix.var(s.counter("row", i.rows))

    def one(o: Operand) -> Operand:
        if isinstance(o, Gm):
            return replace(o, offset=ix.substitute(o.offset, {EACH: r}))
        return replace(o, row=o.row + r)

    made = replace(i, dst=one(i.dst), srcs=tuple(map(one, i.srcs)), rows=ONE)
    return counted(r.args[0], s.limit(i.rows), write(s, made))


def gm_to_l1(s: Scope, i: Instr) -> list[str]:
    """One ND2NZ copy; a copy for each row where the rows of the source lie too far apart for its field."""
    src, dst = i.srcs[0], tile(i, i.dst)
    if s.buffer(dst).layout == "pairs":
        return scaled.gm_to_l1(s, i)
    if anywhere(src):
        return row_by_row(s, i, gm_to_l1)
    stride, rows16 = stride_of(s, src), padded_rows(s.buffer(dst))
    if i.form == "strips":
        return load_strips(s, i, tile(i, dst), src, stride)
    if i.form == "padded":
        return padded(s, i, gm_to_l1, l1_zero)
    s.field(i, "dstNzC0Stride", rows16, 16384)
    low, high = s.bounds(ix.wrap(stride))
    far = _each_row(s, i, stride, rows16) if high > FIELD16 else []
    if low > FIELD16:
        return far
    near = call("DataCopy", s.fractal(dst, 0, 0), s.at(src), _nd2nz(s, i, i.rows, stride, rows16))
    return near if not far else [*block(f"if ({s.cpp(stride)} <= {FIELD16})", near), *block("else", far)]


def _each_row(s: Scope, i: Instr, stride: int | Expr, rows16: int) -> list[str]:
    """An ND2NZ copy for each row."""
    src, dst = i.srcs[0], tile(i, i.dst)
    r = s.counter("row", i.rows)
    params = _nd2nz(s, i, ONE, 1, rows16)
    return counted(r, s.limit(i.rows), call("DataCopy", s.fractal(dst, ix.var(r), 0), s.at(src, ix.var(r) * stride), params))


def _nd2nz(s: Scope, i: Instr, rows: Expr, stride: int | Expr, rows16: int) -> str:
    n = s.field(i, "nValue", rows, ND2NZ_ROWS)
    d = s.field(i, "dValue", i.cols, FIELD16)
    return f"AscendC::Nd2NzParams(1, {n}, {d}, 0, {s.cpp(max(1, stride) if isinstance(stride, int) else stride)}, {rows16}, 1, 0)"


@record
class _Grid:
    """Fractals to move: `outer` x `inner` of them, with the distance between neighbours on both sides, in fractals."""

    outer: Expr
    inner: Expr
    dst_outer: Expr
    src_outer: Expr
    dst_inner: Expr
    src_inner: Expr

    def turned(self) -> _Grid:
        return _Grid(self.inner, self.outer, self.dst_inner, self.src_inner, self.dst_outer, self.src_outer)


def _load(s: Scope, i: Instr, g: _Grid, transpose: bool) -> list[str]:
    """LoadData for every row of the grid; its repeat takes the longer side, the loop the shorter one."""
    src, dst = tile(i, i.srcs[0]), tile(i, i.dst)
    b = s.buffer(src)
    if dst.row != ZERO or dst.col != ZERO:
        raise EmitError(f"{i.op} fills {dst.buffer} from its start only", i.span)
    if s.high(g.outer) > s.high(g.inner) and s.high(g.outer) <= FIELD8 and s.high(g.dst_outer) <= FIELD16:
        g = g.turned()
    size = 16 * s.c0(b)
    repeat = s.field(i, "repeatTimes", g.inner, FIELD8)
    stride, gap = s.field(i, "srcStride", g.src_inner, FIELD16), s.field(i, "dstGap", g.dst_inner - 1, FIELD16)
    params = f"AscendC::LoadData2DParams(0, {repeat}, {stride}, 0, {gap}, {str(transpose).lower()}, 0)"
    step = lambda at: call(  # noqa: E731
        "LoadData", s.slot(dst, at * g.dst_outer * size), s.fractal(src, 0, 0, at * g.src_outer * size), params
    )
    if g.outer.value == 1:
        return step(ZERO)
    f = s.counter("f", g.outer)
    return counted(f, s.limit(g.outer), step(ix.var(f)))


def _load_3d(s: Scope, i: Instr, rows: Expr, cols: Expr) -> list[str]:
    """A transposing load of 32-bit elements: LoadData 2D turns 16-bit fractals only."""
    src, dst = tile(i, i.srcs[0]), tile(i, i.dst)
    b = s.buffer(src)
    if b.dtype is not F32:
        raise EmitError(f"{i.op}: a transposing load of {b.dtype} is not supported", i.span)
    wide = -(-b.cols // s.c0(b)) * s.c0(b)
    fields: dict[str, Expr | int] = {
        "l1H": ONE, "l1W": padded_rows(b), "channelSize": wide, "kExtension": round_up(cols, 8), "mExtension": round_up(rows, 16),
        "kStartPt": src.col, "mStartPt": src.row,
    }  # fmt: skip
    part = s.fresh("part")
    assigned = [f"{part}.{name} = {s.field(i, name, e, LOAD_3D)};" for name, e in fields.items()]
    load = call("LoadData", s.slot(dst), s.slot(replace(src, row=ZERO, col=ZERO)), part)
    return [
        "{",
        *("    " + t for t in [f"AscendC::LoadData3DParamsV2<float> {part};", *assigned, f"{part}.enTranspose = true;", *load]),
        "}",
    ]


def _load_squares(s: Scope, i: Instr, down: Expr, across: Expr) -> list[str]:
    """A transposing load of bytes: squares of 32 x 32, two fractals each; rows of fractals in L0B hold whole squares."""
    src, dst = tile(i, i.srcs[0]), tile(i, i.dst)
    side, squares = s.c0(s.buffer(src)), ceil_div(across, 2)
    repeat = s.field(i, "repeatTimes", squares, FIELD8)
    params = f"AscendC::LoadData2dTransposeParams(0, {repeat}, {padded_rows(s.buffer(src)) // side}, 1, 0)"
    step = lambda at: call(  # noqa: E731
        "LoadDataWithTranspose", s.slot(dst, at * squares * side * side), s.fractal(src, at * side, 0), params
    )
    if down.value == 1:
        return step(ZERO)
    f = s.counter("f", down)
    return counted(f, s.limit(down), step(ix.var(f)))


def l1_to_l0a(s: Scope, i: Instr) -> list[str]:
    """nz -> zz. Rows of fractals run along k in L0A."""
    b = s.buffer(tile(i, i.srcs[0]))
    c0, rows16 = s.c0(b), ix.const(padded_rows(b) // 16)
    m, k = ceil_div(i.rows, 16), ceil_div(i.depth, c0)
    if not i.transpose:
        return _load(s, i, _Grid(m, k, k, ONE, ONE, rows16), False)
    if b.dtype.bytes != 2:
        return _load_3d(s, i, i.depth, i.rows)
    return _load(s, i, _Grid(m, k, k, rows16, ONE, ONE), True)


def l1_to_l0b(s: Scope, i: Instr) -> list[str]:
    """nz -> zn. Rows of fractals run along n in L0B, each fractal stored by columns."""
    b = s.buffer(tile(i, i.srcs[0]))
    c0, rows16 = s.c0(b), ix.const(padded_rows(b) // 16)
    k, n = ceil_div(i.depth, c0), ceil_div(i.cols, 16)
    if i.transpose:
        return _load(s, i, _Grid(k, n, n, rows16, ONE, ONE), False)
    if b.dtype.bytes == 1:
        return _load_squares(s, i, k, n)
    if b.dtype.bytes != 2:
        return _load_3d(s, i, i.depth, i.cols)
    return _load(s, i, _Grid(k, n, n, ONE, ONE, rows16), True)


def accumulator(s: Scope, i: Instr, t: Tile) -> str:
    """A window of L0C: an mmad packs its result, so a window starts behind whole rows of windows and its own columns; a Fixpipe's
    may begin within a result."""
    wide, packed = -(-s.buffer(t).cols // 16) * 16, packed_rows(i)
    if i.op == "mmad" or i.depth == ONE:
        return s.slot(t, t.row * wide + t.col * packed)
    within = ix.mod(t.row, packed)
    return s.slot(t, (t.row - within) * wide + within * 16 + t.col * packed)


def mmad(s: Scope, i: Instr) -> list[str]:
    """m = 1 would switch to a mode that reads A unpadded (contract, clause 13), so it becomes 16; bytes that were turned on their
    way to L0B lie there in whole squares."""
    a, b, c = tile(i, i.srcs[0]), tile(i, i.srcs[1]), tile(i, i.dst)
    m = s.field(i, "m", i.rows, MMAD)
    if s.low(i.rows) <= 1:
        m = "16" if s.high(i.rows) == 1 else f"{m} == 1 ? 16 : {m}"
    squares = any(s.dtype(load.dst).bytes == 1 and not load.transpose for load in s.writers(b.buffer))
    n, k = s.field(i, "n", round_up(i.cols, 32) if squares else i.cols, MMAD), s.field(i, "k", i.depth, MMAD)
    if adds_nothing(s, i):
        k = f"{k} == 0 ? 1 : {k}"
    init = {1: "true", 0: "false"}.get(i.init.value if i.init.value is not None else -1, s.cpp(i.init))
    params = f"AscendC::MmadParams({m}, {n}, {k}, {s.cpp(i.unit)}, false, {init})"
    operands = accumulator(s, i, c), s.slot(a), s.slot(b)
    aligned = s.architecture == "dav-2201" and any(load.transpose and s.dtype(load.dst) is F32 for load in s.writers(a.buffer))
    if not aligned:
        return call("MmadMx" if i.form == "scales" else "Mmad", *operands, params)
    p = s.fresh("params")
    body = [f"AscendC::MmadParams {p} = {params};", f"{p}.kDirectionAlign = true;", *call("Mmad", *operands, p)]
    return ["{", *("    " + line for line in body), "}"]


def fixpipe(s: Scope, i: Instr, write: Writer | None = None) -> list[str]:
    """A Fixpipe for each window of rows that mmads packed on its own."""
    src = tile(i, i.srcs[0])
    steps = {step for m in s.writers(src.buffer) if (step := _row_step(tile(m, m.dst)))}
    step = min(steps, default=0)
    one = write or (lambda s, i, row: _fixpipe(s, i))
    if not step or s.high(i.rows) <= step:
        return one(s, i, ZERO)
    r = s.counter("row", i.rows)
    at = ix.var(r)
    moved = replace(src, row=src.row + at)
    below = i.dst if isinstance(i.dst, Tile) and s.buffer(i.dst).level is Level.UB else _below(s, i.dst, at)
    part = replace(i, srcs=(moved,), rows=ix.minimum(step, i.rows - at), dst=below)
    head = f"for (int32_t {r} = 0; {r} < {s.limit(i.rows)}; {r} += {step})"
    return block(head, one(s, part, at))


def _row_step(t: Tile) -> int:
    """How many rows lie between the windows of L0C that a row of loops fills: the factor of the row's index."""
    return t.row.args[1].args[0] if t.row.op == "mul" else 0


def _below(s: Scope, o: Operand, rows: Expr) -> Operand:
    return replace(o, offset=o.offset + rows * o.stride) if isinstance(o, Gm) else replace(o, row=o.row + rows)


def _fixpipe(s: Scope, i: Instr) -> list[str]:
    """NZ -> ND towards GM and the workspace, NZ -> NZ towards L1, cast where the destination has 16 bits."""
    src, dtype, quant = tile(i, i.srcs[0]), s.dtype(i.dst), _quantisation(s, i)
    to_l1 = isinstance(i.dst, Tile) and s.buffer(i.dst).level is Level.L1
    cols = round_up(i.cols, 16) if to_l1 else i.cols  # NZ has whole fractals
    n, m = s.field(i, "nSize", cols, MMAD), s.field(i, "mSize", i.rows, FIXPIPE_ND_ROWS)
    stride = padded_rows(s.buffer(tile(i, i.dst))) if to_l1 else stride_of(s, i.dst)
    row = s.field(i, "srcStride", packed_rows(i), FIELD16)
    sizes = f"{n}, {m}, {row}, {s.field(i, 'dstStride', stride, FIELD32)}"
    fields = f"{sizes}, {str(i.relu).lower()}, QuantMode_t::{quant}, {scale_bits(s, i)}, 1, 0, 0, {s.cpp(i.unit)}"
    types = f"<{dtype.ascend}, {s.dtype(src).ascend}, AscendC::{'CFG_NZ' if to_l1 else 'CFG_ROW_MAJOR'}>"
    dst = s.fractal(tile(i, i.dst), 0, 0) if to_l1 else s.at(i.dst)
    return call(f"Fixpipe{types}", dst, accumulator(s, i, src), f"AscendC::FixpipeParamsV220({fields})")


def _quantisation(s: Scope, i: Instr) -> str:
    source, dtype = s.dtype(i.srcs[0]), s.dtype(i.dst)
    quant = QUANTISED.get((source, dtype))
    if quant is None or (quant in SCALED) != (i.scalar != 0):
        raise EmitError(f"fixpipe from {source} to {dtype}{' times a number' if i.scalar else ''} is not supported", i.span)
    if isinstance(i.dst, Tile) and s.buffer(i.dst).level is Level.L1 and dtype.bytes == 4:
        raise EmitError("fixpipe to L1 must convert to a 16-bit type", i.span)
    return quant


def fixpipe_3510(s: Scope, i: Instr) -> list[str]:
    """The same windows, in the parameters of architecture 3510."""

    def write(s: Scope, i: Instr, row: Expr) -> list[str]:
        return fixpipe_part(s, i, accumulator(s, i, tile(i, i.srcs[0])), row, _quantisation(s, i))

    return fixpipe(s, i, write)


def _copy_params(s: Scope, i: Instr, far: Operand, near: Tile, rows: Expr, inward: bool) -> str:
    """DataCopyExtParams: GM gaps in bytes, UB gaps in blocks of 32 bytes."""
    size, pitch = s.dtype(far).bytes, s.buffer(near).pitch
    alone = rows == ONE or (pitch * size % 32 != 0 and s.high(rows) <= 1)
    if pitch * size % 32 and not alone:
        raise EmitError(f"{i.op}: rows of {near.buffer} do not start at 32-byte multiples", i.span)
    loaded = (i.cols - i.bound) * size
    length = s.field(i, "blockLen", loaded, BURST_BYTES)
    gm_gap = ZERO if alone else ix.wrap(stride_of(s, far) * size) - loaded
    ub_gap = ZERO if alone else ix.const(pitch * size // 32) - ceil_div(i.cols * size, 32)
    gaps = [s.field(i, "stride", gm_gap, FIELD32), s.field(i, "stride", ub_gap, FIELD32)]
    first, second = gaps if inward else reversed(gaps)
    return f"AscendC::DataCopyExtParams({s.field(i, 'blockCount', rows, BURSTS)}, {length}, {first}, {second}, 0)"


def _contiguous(s: Scope, i: Instr, far: Operand, near: Tile) -> int | None:
    """Elements to copy in one run of whole 32-byte blocks, or None."""
    rows, cols = i.rows.value, i.cols.value
    if rows is None or cols is None or rows * cols * s.dtype(far).bytes % 32 or i.bound != ZERO:
        return None
    return rows * cols if rows == 1 or (stride_of(s, far) == cols == s.buffer(near).pitch) else None


def _by_rows(s: Scope, i: Instr, far: Operand, near: Tile, inward: bool) -> list[str]:
    """Copies of up to 4095 rows each; of one, where the rows lie too far apart in GM for the stride's field."""
    stride = stride_of(s, far)
    most = BURSTS if isinstance(stride, Expr) or stride * s.dtype(far).bytes <= FIELD32 else 1

    def one(at: Expr, rows: Expr) -> list[str]:
        gm, ub = s.at(far, at * stride_of(s, far)), s.at(near, at * s.buffer(near).pitch)
        params = _copy_params(s, i, far, near, rows, inward)
        pad = [_padding(s, i)] if inward else []
        return call("DataCopyPad", *((ub, gm) if inward else (gm, ub)), params, *pad)

    if s.high(i.rows) <= most:
        return one(ZERO, i.rows)
    r = s.counter("row", i.rows)
    if most == 1:
        return counted(r, s.limit(i.rows), one(ix.var(r), ONE))
    rows = ix.minimum(ix.const(most), i.rows - ix.var(r))
    head = f"for (int32_t {r} = 0; {r} < {s.limit(i.rows)}; {r} += {most})"
    return [head + " {", *("    " + t for t in one(ix.var(r), rows)), "}"]


def _padding(s: Scope, i: Instr) -> str:
    """What follows the last element of a row in its block of 32 bytes, or the zeros before the first one."""
    dtype, each = s.dtype(i.dst), 32 // s.dtype(i.dst).bytes
    if i.bound != ZERO:
        return f"AscendC::DataCopyPadExtParams<{dtype.ascend}>(true, {s.cpp(i.bound)}, 0, {number(0.0, dtype)})"
    if i.pad is None or (i.cols % each).value == 0:
        return f"AscendC::DataCopyPadExtParams<{dtype.ascend}>()"
    right = s.cpp((each - i.cols % each) % each)
    return f"AscendC::DataCopyPadExtParams<{dtype.ascend}>(true, 0, {right}, {number(i.pad, dtype)})"


def gm_to_ub(s: Scope, i: Instr) -> list[str]:
    far, near = i.srcs[0], tile(i, i.dst)
    if anywhere(far):
        return row_by_row(s, i, gm_to_ub)
    if (n := _contiguous(s, i, far, near)) is not None:
        return call("DataCopy", s.at(near), s.at(far), str(n))
    return _by_rows(s, i, far, near, True)


def ub_to_gm(s: Scope, i: Instr) -> list[str]:
    far, near = i.dst, tile(i, i.srcs[0])
    if anywhere(far):
        return row_by_row(s, i, ub_to_gm)
    if (n := _contiguous(s, i, far, near)) is not None:
        return call("DataCopy", s.at(far), s.at(near), str(n))
    return _by_rows(s, i, far, near, False)


def l1_zero(s: Scope, i: Instr) -> list[str]:
    """A whole slot of L1 as zeros, or a window of it: for each fractal of columns a run of rows."""
    dst = tile(i, i.dst)
    b = s.buffer(dst)
    place, times, blocks, gap = s.slot(dst), ONE, ix.const(b.slot_bytes // 32), ZERO
    if i.form == "window":
        place, times, blocks = s.fractal(dst, 0, 0), ceil_div(i.cols * b.dtype.bytes, 32), i.rows
        gap = padded_rows(b) - i.rows
    kind, place = (b.dtype.ascend, place) if b.dtype.bytes > 1 else ("int16_t", f"{place}.ReinterpretCast<int16_t>()")
    sizes = (("repeatTimes", times), ("blockNum", blocks), ("dstGap", gap))
    fields = ", ".join(str(s.field(i, name, value, 32767)) for name, value in sizes)
    return call("InitConstValue", place, f"AscendC::InitConstValueParams<{kind}>({fields}, static_cast<{kind}>(0))")


ON_3510 = {**DIRECT, "fixpipe": fixpipe_3510}
CUBE_AND_COPIES = {
    "gm_to_l1": gm_to_l1,
    "l1_zero": l1_zero,
    "l1_to_l0a": l1_to_l0a,
    "l1_to_l0b": l1_to_l0b,
    "mmad": mmad,
    "fixpipe": fixpipe,
    "gm_to_ub": gm_to_ub,
    "ub_to_gm": ub_to_gm,
}
