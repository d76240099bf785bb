"""What architecture 3510 writes in its own way: loads into L0A and L0B, and the ways between the cores that do not pass GM.

Fields follow `kernel_struct_fixpipe.h`, `kernel_struct_mm.h` and the vendor's samples `fixpipe_l0c2ub` and
`matmul_gelu_high_performance`. L0A holds NZ there (2201: zZ), L0B zN as before.
"""

from __future__ import annotations

from struct import pack

from tile_eg.emit.ascend_c import scaled
from tile_eg.emit.ascend_c.index import EmitError, Scope, block, call, ceil_div, counted, padded_rows, round_up
from tile_eg.ir import index as ix
from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.machine import FIXPIPE_ND_ROWS, most_of
from tile_eg.ir.program import Instr, Tile
from tile_eg.ops.types import I8, Level

FIELD16, FIELD32 = 65535, 2**32 - 1
BLOCKS, RESULT_COLS = most_of("DataCopyParams.blockCount"), most_of("FixpipeParamsV220.nSize")
UB = "CFG_ROW_MAJOR_UB"


def load_l0(s: Scope, i: Instr) -> list[str]:
    """One LoadData2DParamsV2: fractals in columns, each turned where L0A wants k x m or L0B k x n turned."""
    if i.form == "scales":
        return scaled.load_l0(s, i)
    src, dst = i.srcs[0], i.dst
    assert isinstance(src, Tile) and isinstance(dst, Tile)
    if dst.row != ZERO or dst.col != ZERO:
        raise EmitError(f"{i.op} fills {dst.buffer} from its start only", i.span)
    b, wide = s.buffer(src), i.rows if i.op == "l1_to_l0a" else i.cols
    turned = i.transpose if i.op == "l1_to_l0a" else not i.transpose
    c0, across = s.c0(b), ceil_div(wide, 16)
    if turned and b.dtype.bytes == 1:  # in squares of two fractals
        down, right = ceil_div(i.depth, 32) * 2, ceil_div(wide, 32)
        across = right * 2
    elif turned:
        down, right = ceil_div(i.depth, 16), across * (16 // c0)
    else:
        down, right = across, ceil_div(i.depth, c0)
    m, k = s.field(i, "mStep", down, FIELD16), s.field(i, "kStep", right, FIELD16)
    to = s.field(i, "dstStride", across, FIELD16)
    params = f"AscendC::LoadData2DParamsV2(0, 0, {m}, {k}, {padded_rows(b) // 16}, {to}, {str(turned).lower()}, 0)"
    return call("LoadData", s.slot(dst), s.fractal(src, 0, 0), params)


def fixpipe_part(s: Scope, i: Instr, source: str, at: Expr, quant: str) -> list[str]:
    """A window of L0C that Mmads packed on its own, whose first row is row `at` of the result: to GM, to L1 or into UB."""
    target = s.buffer(i.dst) if isinstance(i.dst, Tile) else None
    if target is None or target.level is Level.WS:
        dst, stride = s.at(i.dst), target.pitch if target else i.dst.stride  # type: ignore[union-attr]
        return _fixpipe(s, i, dst, source, i.rows, stride, quant, "CFG_ROW_MAJOR")
    if target.level is Level.L1:
        assert isinstance(i.dst, Tile)
        stride = padded_rows(target) * s.c0(target)
        return _fixpipe(s, i, s.fractal(i.dst, 0, 0), source, i.rows, stride, quant, "CFG_NZ")
    return _into_ub(s, i, source, at, quant)


def packed_rows(i: Instr) -> Expr:
    """How many rows lie in L0C between two columns of fractals: those of an mmad, or those that a Fixpipe finds there."""
    return round_up(i.depth if i.op == "fixpipe" and i.depth != ONE else i.rows, 16)


def scale_bits(s: Scope, i: Instr) -> str:
    """The number that a Fixpipe multiplies by, as the bits of a float; 0 where it does not. Bit 46: signed bytes come out."""
    if not i.scalar:
        return "0"
    return hex(int.from_bytes(pack("<f", i.scalar), "little") | (1 << 46 if s.dtype(i.dst) is I8 else 0))


def _into_ub(s: Scope, i: Instr, source: str, at: Expr, quant: str) -> list[str]:
    """Both halves at once where the result has all its rows, else one Fixpipe for each vector core that has some of them."""
    assert isinstance(i.dst, Tile)
    target = s.buffer(i.dst)
    half = target.rows

    def write(dst: str, way: str) -> list[str]:
        return _fixpipe(s, i, dst, source, i.rows, target.pitch, quant, UB, way)

    if not target.halved:
        to = s.slot(i.dst, at * target.pitch)
        return [t for k in range(2 if s.program.halves else 1) for t in write(to, f"subBlockId = {k}")]
    whole = write(s.slot(i.dst), "dualDstCtl = 1")
    if at == ZERO and i.rows.value == 2 * half:
        return whole
    parts = [t for k in (0, 1) for t in _half(s, i, source, at, quant, k)]
    if at != ZERO or s.high(i.rows) < 2 * half:
        return parts
    return [*block(f"if ({s.limit(i.rows)} == {2 * half})", whole), *block("else", parts)]


def _half(s: Scope, i: Instr, source: str, at: Expr, quant: str, k: int) -> list[str]:
    """The rows of a window that belong to vector core k."""
    assert isinstance(i.dst, Tile)
    target = s.buffer(i.dst)
    first = ix.maximum(at, k * target.rows)
    rows = ix.minimum(at + i.rows, (k + 1) * target.rows) - first
    if s.high(rows) <= 0:
        return []
    dst = s.slot(i.dst, (first - k * target.rows) * target.pitch)
    begin = f"{source}[{s.cpp((first - at) * 16)}]" if first != at else source
    text = _fixpipe(s, i, dst, begin, rows, target.pitch, quant, UB, f"subBlockId = {k}")
    return block(f"if ({s.limit(rows)} > 0)", text) if s.low(rows) <= 0 else text


def _fixpipe(
    s: Scope, i: Instr, dst: str, src: str, rows: Expr, stride: int | Expr, quant: str, config: str, way: str = ""
) -> list[str]:
    nz = config == "CFG_NZ"
    cols = round_up(i.cols, 16) if nz else i.cols
    layout = f"AscendC::CO2Layout::{'NZ' if nz else 'ROW_MAJOR'}"
    params, dtype = s.fresh("params"), s.dtype(i.dst)
    n, m = s.field(i, "nSize", cols, RESULT_COLS), s.field(i, "mSize", rows, FIXPIPE_ND_ROWS)
    packed = s.field(i, "srcStride", packed_rows(i), FIELD16)
    sizes = f"{n}, {m}, {packed}, {s.field(i, 'dstStride', stride, FIELD32)}"
    fields = [f"quantPre = QuantMode_t::{quant}"] if quant != "NoQuant" else []
    fields += [f"deqScalar = {scale_bits(s, i)}"] if i.scalar else []
    fields += ["reluEn = true"] if i.relu else []
    fields += [way] if way and way != "subBlockId = 0" else []
    name = config if config == UB else f"AscendC::{config}"
    lines = [
        f"AscendC::FixpipeParamsArch3510<{layout}> {params}({sizes});",
        *(f"{params}.{field};" for field in fields),
        *call(f"Fixpipe<{dtype.ascend}, {s.dtype(i.srcs[0]).ascend}, {name}>", dst, src, params),
    ]
    return ["{", *("    " + line for line in lines), "}"]


def ub_to_l1(s: Scope, i: Instr) -> list[str]:
    """Rows become NZ: a copy for each column of 32-byte blocks."""
    src, dst = i.srcs[0], i.dst
    assert isinstance(src, Tile) and isinstance(dst, Tile)
    b = s.buffer(src)
    c0 = s.c0(b)
    if b.pitch % c0 and i.rows != ONE:
        raise EmitError(f"{i.op}: rows of {src.buffer} do not start at 32-byte multiples", i.span)
    f = s.counter("column", ceil_div(i.cols, c0))
    at = ix.var(f) * c0
    size = 0 if i.rows == ONE else b.pitch // c0 - 1
    params = f"AscendC::DataCopyParams({s.field(i, 'blockCount', i.rows, BLOCKS)}, 1, {size}, 0)"
    to, start = s.slot(dst, (dst.row + at // c0 * padded_rows(s.buffer(dst))) * c0), s.at(src, at)
    return counted(f, s.limit(ceil_div(i.cols, c0)), call("DataCopy", to, start, params))


def l1_to_ub(s: Scope, i: Instr) -> list[str]:
    """NZ becomes rows: for each vector core (there must be two) a copy of its rows for each column of 32-byte blocks."""
    src, dst = i.srcs[0], i.dst
    assert isinstance(src, Tile) and isinstance(dst, Tile)
    target, b = s.buffer(dst), s.buffer(src)
    if not target.halved:
        raise EmitError(f"{i.op} gives each of two vector cores its rows, and {dst.buffer} is not halved", i.span)
    return [line for k in (0, 1) for line in _rows_of_core(s, i, src, dst, k, 32 // b.dtype.bytes)]


def _rows_of_core(s: Scope, i: Instr, src: Tile, dst: Tile, k: int, c0: int) -> list[str]:
    half, pitch, columns = s.buffer(dst).rows, s.buffer(dst).pitch, ceil_div(i.cols, c0)
    rows, f = ix.minimum(i.rows - k * half, half), s.counter("column", columns)
    if s.high(rows) <= 0:
        return []
    at = ix.var(f) * c0
    gap = pitch // c0 - 1 if half > 1 else 0
    params = f"AscendC::DataCopyParams({s.field(i, 'blockCount', rows, BLOCKS)}, 1, 0, {gap})"
    copy = call(f"DataCopyL1ToUB<{s.dtype(src).ascend}, {k}>", s.slot(dst, at), s.fractal(src, k * half, at), params)
    lines = counted(f, s.limit(columns), copy)
    return block(f"if ({s.limit(rows)} > 0)", lines) if s.low(rows) <= 0 else lines


UB_ROWS = f"constexpr AscendC::FixpipeConfig {UB} = {{AscendC::CO2Layout::ROW_MAJOR, true}};"
DIRECT = {"l1_to_l0a": load_l0, "l1_to_l0b": load_l0, "ub_to_l1": ub_to_l1, "l1_to_ub": l1_to_ub}
