"""Vector instructions as Ascend C: op -> the lines of its text.

An instruction in the `flat` form is one call over a run of elements. In the `rows` form it becomes calls with mask and repeat:
the repeat walks down the rows of one chunk of columns, or along the chunks of one row, whichever takes fewer calls and fits its
fields. Barriers between the dependent steps of one instruction belong to its text.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_eg.emit.ascend_c.bytes import bits_of_bytes, by_two_bytes, bytes_filled, bytes_moved
from tile_eg.emit.ascend_c.element_types import BY_BITS, TYPES, seen, times, without_sign
from tile_eg.emit.ascend_c.index import EmitError, Scope, block, call, ceil_div, counted, number
from tile_eg.emit.ascend_c.scalar import scalar_operand, store_element
from tile_eg.emit.ascend_c.strips import cast_to_strips, strips
from tile_eg.ir import index as ix
from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.machine import BLOCK_BYTES, MAX_REPEAT, REPEAT_BYTES, most_of
from tile_eg.ir.program import BINARY, MULTIPLY_ADD, SCALAR, SPREAD, UNARY, Instr, Operand, Tile
from tile_eg.ops import elementwise
from tile_eg.ops.casts import ROUND
from tile_eg.ops.records import record
from tile_eg.ops.types import F16, F32, I16, I32, SIGNED

STRIDE = most_of("repStride")
BARRIER = "AscendC::PipeBarrier<PIPE_V>();"
NAMES = {
    **{op.name: op.native for op in elementwise.UNARY.values() if op.native},
    **{op.name: op.native for op in elementwise.BINARY.values() if op.native},
    **{f"{op.name}s": op.with_scalar for op in elementwise.BINARY.values() if op.with_scalar},
}


@record
class View:
    """An operand as mask and repeat see it: blocks of 32 bytes between rows, between chunks, and between the blocks of a chunk.

    `row` and `chunk` are the same distances in elements; a broadcast operand has zeros.
    """

    tile: Tile
    row_blocks: int
    chunk_blocks: int
    block_stride: int
    row: int
    chunk: int


@record
class Job:
    """One elementwise instruction over rows x cols. `flat(operands, count)` and `masked(operands, mask, repeat, strides)` make
    its calls.

    `lanes` elements fill the widest operand's vector register.
    """

    instr: Instr
    views: tuple[View, ...]
    lanes: int
    flat: Callable[[list[str], str], list[str]]
    masked: Callable[[list[str], str, str, list[str]], list[str]]
    rows: Expr
    cols: Expr


def tile(i: Instr, o: Operand) -> Tile:
    if isinstance(o, Tile):
        return o
    raise EmitError(f"{i.op} works in UB only, not on tensor {o.tensor}", i.span)


def view(s: Scope, t: Tile, lanes: int, kind: str = "") -> View:
    """kind: "" a tile, rows (a vbrcb result, one block a row) or cols (one row for all)."""
    b = s.buffer(t)
    size = b.dtype.bytes
    if kind == "rows":
        return View(t, 1, 0, 0, BLOCK_BYTES // size, 0)
    pitch = 0 if kind == "cols" else b.pitch
    return View(t, pitch * size // BLOCK_BYTES, lanes * size // BLOCK_BYTES, 1, pitch, lanes)


def lanes_of(s: Scope, tiles: list[Tile]) -> int:
    return REPEAT_BYTES // max(s.buffer(t).dtype.bytes for t in tiles)


def written(s: Scope, j: Job) -> list[str]:
    """The text of a job in the form that its instruction asks for."""
    if j.instr.form == "flat":
        return _flat(s, j)
    aligned(s, j)
    chunks, rows = -(-s.high(j.cols) // j.lanes), s.high(j.rows)
    deep = max(v.row_blocks for v in j.views)
    return _along(s, j) if rows < chunks or (deep > STRIDE and rows > 1) else _down(s, j)


def _flat(s: Scope, j: Job) -> list[str]:
    pitches = {s.buffer(v.tile).pitch for v in j.views}
    one = s.high(j.rows) <= 1  # what lies behind a single row is not its own
    if len(pitches) > 1 and not one:
        raise EmitError(f"{j.instr.op}: the flat form needs operands of one pitch", j.instr.span)
    count = j.rows * (j.cols if one else pitches.pop())
    return j.flat([s.at(v.tile) for v in j.views], s.field(j.instr, "count", count, 2**31 - 1))


def aligned(s: Scope, j: Job) -> None:
    for v in j.views:
        b = s.buffer(v.tile)
        if v.row_blocks * BLOCK_BYTES != v.row * b.dtype.bytes and j.rows != ONE:
            raise EmitError(f"{j.instr.op}: rows of {b.name} do not start at 32-byte multiples", j.instr.span)


def _down(s: Scope, j: Job) -> list[str]:
    """Repeats walk down the rows, calls walk along the columns."""
    strides = stride_fields(s, j, [v.row_blocks for v in j.views])
    return in_parts(s, j, lambda at, rows: _columns(s, j, at, rows, strides))


def stride_fields(s: Scope, j: Job, repeats: list[int]) -> list[str]:
    blocks = [str(v.block_stride) for v in j.views]
    return blocks + [s.field(j.instr, "repeat stride", min(r, STRIDE) if j.rows == ONE else r, STRIDE) for r in repeats]


def in_parts(s: Scope, j: Job, one: Callable[[Expr, Expr], list[str]]) -> list[str]:
    """At most 255 rows a call."""
    high = s.high(j.rows)
    if high <= MAX_REPEAT:
        return one(ZERO, j.rows)
    if j.rows.value is not None:
        parts = [(at, min(MAX_REPEAT, high - at)) for at in range(0, high, MAX_REPEAT)]
        return [line for at, n in parts for line in one(ix.const(at), ix.const(n))]
    r = s.fresh("row")
    s.ranges[r] = (0, high - 1)
    body = one(ix.var(r), ix.minimum(ix.const(MAX_REPEAT), j.rows - ix.var(r)))
    return block(f"for (int32_t {r} = 0; {r} < {s.limit(j.rows)}; {r} += {MAX_REPEAT})", body)


def _columns(s: Scope, j: Job, row: Expr, rows: Expr, strides: list[str]) -> list[str]:
    def one(at: Expr, mask: Expr) -> list[str]:
        operands = [s.at(v.tile, row * v.row + at * (v.chunk // j.lanes)) for v in j.views]
        return j.masked(operands, s.cpp(mask), s.field(j.instr, "repeat", rows, MAX_REPEAT), strides)

    return by_chunks(s, j.cols, j.lanes, ZERO, one)


def by_chunks(s: Scope, cols: Expr, lanes: int, first: Expr, one: Callable[[Expr, Expr], list[str]]) -> list[str]:
    """Calls for the columns from `first` on in chunks of `lanes`, with the mask of each; a loop where there are many."""
    high = s.high(cols)
    start = first.value or 0
    if high <= start:
        return []
    if cols.value is not None:
        full, tail = divmod(high - start, lanes)
        if full > 2:
            c = s.fresh("col")
            end = start + full * lanes
            s.ranges[c] = (start, end - lanes)
            body = one(ix.var(c), ix.const(lanes))
            out = block(f"for (int32_t {c} = {start}; {c} < {end}; {c} += {lanes})", body)
        else:
            out = [line for n in range(full) for line in one(ix.const(start + n * lanes), ix.const(lanes))]
        return out + (one(ix.const(start + full * lanes), ix.const(tail)) if tail else [])
    if high <= lanes and not start:
        return one(ZERO, cols)
    c = s.fresh("col")
    s.ranges[c] = (start, high - 1)
    mask = ix.minimum(ix.const(lanes), cols - ix.var(c))
    return block(f"for (int32_t {c} = {start}; {c} < {s.limit(cols)}; {c} += {lanes})", one(ix.var(c), mask))


def _along(s: Scope, j: Job) -> list[str]:
    """Calls walk down the rows, repeats walk along the columns: plain counts unless an operand is broadcast along them."""
    r = s.counter("row", j.rows)
    if all(v.chunk for v in j.views):
        return counted(r, s.limit(j.rows), j.flat([s.at(v.tile, ix.var(r) * v.row) for v in j.views], s.cpp(j.cols)))
    strides = [str(v.block_stride) for v in j.views] + [str(v.chunk_blocks) for v in j.views]
    full = j.cols // j.lanes
    rest = j.cols - full * j.lanes
    body = _repeated(s, j, [ix.var(r) * v.row for v in j.views], [v.chunk for v in j.views], full, strides)
    if rest != ZERO:
        ends = [s.at(v.tile, ix.var(r) * v.row + full * v.chunk) for v in j.views]
        lines = j.masked(ends, s.cpp(rest), "1", strides)
        body += lines if rest.value else block(f"if ({s.limit(rest)} > 0)", lines)
    return counted(r, s.limit(j.rows), body)


def _repeated(s: Scope, j: Job, places: list[Expr], steps: list[int], count: Expr, strides: list[str]) -> list[str]:
    """`count` full repeats, at most 255 a call; `steps` are the elements of each operand from repeat to repeat."""
    out: list[str] = []
    for first in range(0, s.high(count), MAX_REPEAT):
        operands = [s.at(v.tile, at + first * step) for v, at, step in zip(j.views, places, steps, strict=True)]
        part = ix.minimum(ix.const(MAX_REPEAT), count - first) if s.high(count) > first + MAX_REPEAT else count - first
        repeat = s.field(j.instr, "repeat", part, MAX_REPEAT)
        lines = j.masked(operands, str(j.lanes), repeat, strides)
        out += lines if s.low(part) > 0 else block(f"if ({repeat} > 0)", lines)
    return out


def _apart(s: Scope, j: Job, blocks: int) -> list[str]:
    """Each row in two calls, its even and its odd pieces of 256 bytes, each with the copy of the blocks in the other bank group.

    `blocks` is their view. The copies take turns, eight rows each.
    """
    if j.cols.value is None or j.cols.value % (2 * j.lanes):
        raise EmitError(f"{j.instr.op}: the form apart takes whole stretches of 512 bytes", j.instr.span)
    r, other = s.fresh("row"), 3 - blocks
    s.ranges[r] = (0, s.high(j.rows) - 1)
    at, size = ix.var(r), j.lanes
    pair = at * j.views[blocks].row + at // 8 * size if s.high(j.rows) > 8 else at * j.views[blocks].row
    own, theirs = (s.buffer(j.views[v].tile).addresses[0] // REPEAT_BYTES for v in (blocks, other))
    body: list[str] = []
    for odd in (0, 1):
        copy = (own + theirs + odd + 1) % 2
        places = [pair + copy * size if v == blocks else at * view.row + odd * size for v, view in enumerate(j.views)]
        strides = [str(v.block_stride) for v in j.views] + [str(2 * v.chunk_blocks) for v in j.views]
        body += _repeated(s, j, places, [2 * v.chunk for v in j.views], j.cols // (2 * size), strides)
    return counted(r, s.limit(j.rows), body)


def checked(s: Scope, i: Instr, tiles: list[Tile]) -> None:
    """EmitError where the instruction does not take an operand's element type."""
    known = TYPES.get(i.op[1:].partition("_")[0], (F16, F32))
    if any(s.buffer(t).dtype not in known for t in tiles):
        raise EmitError(f"{i.op} works on {' and '.join(map(str, known))} only", i.span)


def unary_job(
    s: Scope, i: Instr, name: str, dst: Tile, src: Tile, extra: tuple[str, ...] = (), seen_as: str = "", each: int = 1
) -> Job:
    """dst = name(src, extra): `UnaryRepeatParams`. `seen_as` stands behind each operand, which then has `each` times as many
    elements."""
    lanes = lanes_of(s, [dst, src])

    def masked(operands: list[str], mask: str, repeat: str, strides: list[str]) -> list[str]:
        found = (o + seen_as for o in operands)
        return call(name, *found, *extra, times(mask, each), repeat, f"AscendC::UnaryRepeatParams({', '.join(strides)})")

    views = (view(s, dst, lanes), view(s, src, lanes))
    flat = lambda o, n: call(name, *(x + seen_as for x in o), *extra, times(n, each))  # noqa: E731
    return Job(i, views, lanes, flat, masked, i.rows, i.cols)


def binary_job(s: Scope, i: Instr, name: str, views: tuple[View, View, View], lanes: int) -> Job:
    behind, each = seen(s.buffer(views[0].tile).dtype, name in BY_BITS)

    def masked(operands: list[str], mask: str, repeat: str, strides: list[str]) -> list[str]:
        found = (o + behind for o in operands)
        return call(name, *found, times(mask, each), repeat, f"AscendC::BinaryRepeatParams({', '.join(strides)})")

    return Job(i, views, lanes, lambda o, n: call(name, *(x + behind for x in o), times(n, each)), masked, i.rows, i.cols)


def unary(s: Scope, i: Instr) -> list[str]:
    dst, src = tile(i, i.dst), tile(i, i.srcs[0])
    if bits_of_bytes(s, NAMES.get(i.op[1:]), [dst, src]):
        return by_two_bytes(s, i, NAMES[i.op[1:]], [dst, src])
    checked(s, i, [dst, src])
    op = elementwise.UNARY[i.op[1:]]
    behind, each = seen(s.buffer(dst).dtype, op.native in BY_BITS)
    return written(s, unary_job(s, i, op.native, dst, src, (op.mode,) if op.mode else (), behind, each))


def copy(s: Scope, i: Instr) -> list[str]:
    """UB to UB, or the same bits as another element type, by adding zero: exact for every value, and takes any count.

    Of others than f16 and f32 the bits are copied, as whole numbers.
    """
    dst, src = tile(i, i.dst), tile(i, i.srcs[0])
    dtype = s.buffer(dst).dtype
    if dtype.bits != s.buffer(src).dtype.bits:
        raise EmitError(f"{i.op} copies elements of one size only", i.span)
    if dtype == s.buffer(src).dtype and dtype in (F16, F32, I16, I32):
        zero = number(0.0, dtype)
        return written(s, unary_job(s, i, "Adds", dst, src, (zero,)))
    if dtype.bytes == 1:
        return bytes_moved(s, i, dst, src)
    as_type = "int16_t" if dtype.bytes == 2 else "int32_t"
    return written(s, unary_job(s, i, "Adds", dst, src, (f"{as_type}(0)",), f".ReinterpretCast<{as_type}>()"))


def scalar(s: Scope, i: Instr) -> list[str]:
    dst, src = tile(i, i.dst), tile(i, i.srcs[0])
    checked(s, i, [dst, src])
    name, dtype = "Axpy" if i.op == "vaxpy" else NAMES[i.op[1:]], s.buffer(src).dtype
    as_type = without_sign(dtype) if i.op == "vshls" else dtype if i.op == "vshrs" else SIGNED.get(dtype, dtype)
    behind = f".ReinterpretCast<{as_type.ascend}>()" if as_type != dtype else ""  # a shift to the left would keep the sign
    return written(s, unary_job(s, i, name, dst, src, (scalar_operand(s, i, as_type),), behind))


def binary(s: Scope, i: Instr) -> list[str]:
    """Plain, row-broadcast and column-broadcast forms, and the fused multiply-add."""
    op, _, kind = i.op[1:].partition("_")
    dst, a, b = tile(i, i.dst), tile(i, i.srcs[0]), tile(i, i.srcs[1])
    if bits_of_bytes(s, NAMES.get(i.op[1:]), [dst, a, b]):
        return by_two_bytes(s, i, NAMES[i.op[1:]], [dst, a, b])
    checked(s, i, [dst, a, b])
    lanes = lanes_of(s, [dst, a, b])
    outer = kind == "outer"
    first, second = view(s, a, lanes, "cols" if outer else ""), view(s, b, lanes, "rows" if outer else kind)
    views = (view(s, dst, lanes), *((second, first) if i.swap else (first, second)))
    j = binary_job(s, i, "MulAddDst" if op == "muladd" else NAMES[op], views, lanes)
    if i.form == "apart":
        return _apart(s, j, blocks=1 if i.swap else 2)
    if kind == "cols" and i.rows == ONE:
        return j.flat([s.at(v.tile) for v in views], s.cpp(i.cols))
    if kind:
        aligned(s, j)
        chunks, rows = -(-s.high(j.cols) // j.lanes), s.high(j.rows)
        deep = max(v.row_blocks for v in views) > STRIDE and rows > 1
        return _along(s, j) if rows < chunks or deep else _down(s, j)
    return written(s, j)


def cast(s: Scope, i: Instr) -> list[str]:
    dst, src = tile(i, i.dst), tile(i, i.srcs[0])
    types = s.buffer(src).dtype, s.buffer(dst).dtype
    if types[0].bits == types[1].bits and types[0].whole and types[1].whole:
        return copy(s, i)
    if types not in ROUND:
        raise EmitError(f"no cast from {types[0]} to {types[1]}", i.span)
    mode = i.mode if i.mode and ROUND[types] != "CAST_NONE" else ROUND[types]
    if i.form == "strips":
        return cast_to_strips(s, i, dst, src, mode)
    scale = [f"AscendC::SetDeqScale({number(i.scalar, F16)});"] if types == (I32, F16) else []
    return [*scale, *written(s, unary_job(s, i, "Cast", dst, src, (f"AscendC::RoundMode::{mode}",)))]


def duplicate(s: Scope, i: Instr) -> list[str]:
    dst = tile(i, i.dst)
    dtype = s.buffer(dst).dtype
    if dtype.bytes == 1:
        return bytes_filled(s, i, dst)
    value = scalar_operand(s, i, dtype)
    lanes = lanes_of(s, [dst])

    def masked(operands: list[str], mask: str, repeat: str, strides: list[str]) -> list[str]:
        return call("Duplicate", *operands, value, mask, repeat, *strides)

    j = Job(i, (view(s, dst, lanes),), lanes, lambda o, n: call("Duplicate", *o, value, n), masked, i.rows, i.cols)
    return written(s, j)


def brcb(s: Scope, i: Instr) -> list[str]:
    """Each element becomes a block of 32 bytes, eight elements a repeat: the destination holds whole groups of eight rows.

    In the form `apart` each group is there twice.
    """
    dst, src = tile(i, i.dst), tile(i, i.srcs[0])
    copies = 2 if i.form == "apart" else 1
    room = s.buffer(dst).slot_bytes // (8 * BLOCK_BYTES * copies)
    if s.high(ceil_div(i.rows, 8)) > room:
        raise EmitError(f"vbrcb: {s.buffer(dst).name} must hold whole groups of 8 rows of 32 bytes", i.span)
    repeat = s.field(i, "repeat", ceil_div(i.rows, 8), MAX_REPEAT)
    places = [s.at(dst, ix.const(n * REPEAT_BYTES // s.buffer(dst).dtype.bytes)) for n in range(copies)]
    return [x for at in places for x in call("Brcb", at, s.at(src), repeat, f"AscendC::BrcbRepeatParams(1, {8 * copies})")]


VECTOR_OPS: dict[str, Callable[[Scope, Instr], list[str]]] = {
    **{f"v{u}": unary for u in UNARY},
    **{f"v{x}": scalar for x in SCALAR},
    **{f"v{b}{kind}": binary for b in BINARY for kind in ("", *SPREAD)},
    "vcopy": copy,
    "vaxpy": scalar,
    **dict.fromkeys(MULTIPLY_ADD, binary),
    "vcast": cast,
     "vdup": duplicate, "vbrcb": brcb, "vstrips": strips, "store_element": store_element,
}
