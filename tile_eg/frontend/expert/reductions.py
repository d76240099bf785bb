"""Reductions in a kernel that is kept: of rows, of columns, of planes of them; of whole numbers by joining halves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader, on
from tile_eg.frontend.expert.steps import cast_into, cast_to, room_in
from tile_eg.frontend.expert.unaligned import aligned
from tile_eg.frontend.expert.vectors import elementwise, first, scratch, ub
from tile_eg.frontend.python.extents import Extents, extents_of
from tile_eg.frontend.python.tile_words import HANDLERS
from tile_eg.frontend.python.values import as_region
from tile_eg.frontend.python.words import known
from tile_eg.frontend.ssa.whole_reductions import neutral, power_of_two
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.machine import BLOCK_BYTES, REPEAT_BYTES
from tile_eg.ir.program import Tile
from tile_eg.ops import elementwise as ops
from tile_eg.ops.elementwise import ALL, REDUCE, SIGNED_TOO
from tile_eg.ops.types import BF16, F16, F32, I16, I32, U32, DType


def _reduce(op: str, r: ExpertReader, span: Span, buffer: Any, out: Any = None, dim: Any = -1, clear: Any = True,
            real_shape: Any = None, size: Any = None, magnitudes: bool = False) -> None:  # fmt: skip
    if out is None:
        raise TileError(f"T.reduce_{op} writes a buffer", span, help=f"T.reduce_{op}(buffer, out, dim=-1)")
    real_shape = size if real_shape is None else real_shape
    x, to, shape = ub(r, buffer, span, counted=True), ub(r, out, span, counted=True), as_region(buffer, span).shape or (1,)
    rank, axis = len(shape), known(dim, "dim", span)
    if not -rank <= axis < rank:
        raise TileError(f"dim {axis} does not exist in a tile of shape {shape}", span, help="-1 is the last one")
    axis %= rank
    if r.ends is not None and real_shape is None and not x.counted:
        x = r.ends.of(r, x, axis == rank - 1, span, some=False)
    x, planes = replace(aligned(r, span, x), valid_rows=x.valid_rows, valid_cols=x.valid_cols), prod(shape[:-2])
    if real_shape is not None:
        x, planes = _part(r, x, extents_of(r, real_shape, "real_shape", span), span), 1
    if axis < rank - 2:
        help = "copy each plane to a buffer of its own, and join these: T.tile.add, T.tile.max, T.tile.min"
        raise TileError(f"dim {axis} of {rank} is not reduced in a kernel that is kept", span, help=help)
    if axis == rank - 2 and planes > 1 and x.valid_rows.value != x.rows:
        what = "planes that a tensor's end cuts off are not reduced over their rows in the order of the statements"
        raise TileError(what, span, help="say what stands there: T.copy(A[h, i, j], a, pad_value=0.0)")
    x = _magnitudes(r, span, x) if magnitudes else x
    across = axis == rank - 1
    count = x.rows if across else planes * x.cols
    if to.count < count:
        raise TileError(f"{to.count} elements cannot hold {count} results", span)
    there = x.valid_cols if across else x.valid_rows
    if ix.bounds(there, r.ranges)[0] > 0:
        return _written(op, r, span, x, to, count, bool(clear), (across, planes))
    if clear:
        r.instr("vdup", to.operand, cols=ix.const(count), scalar=_of_nothing(op, to), span=span)
    any_exists = ix.less(0, there)
    with r.block(repeats=False) as then, r.where(any_exists):
        _written(op, r, span, x, to, count, bool(clear), (across, planes))
    return r.place_node(None, pr.When(any_exists, tuple(then)))  # type: ignore[arg-type]


def _of_nothing(op: str, to: Place) -> float:
    return neutral(op, to.dtype)


def _written(
    op: str, r: ExpertReader, span: Span, x: Place, to: Place, count: int, clear: bool, way: tuple[bool, int]
) -> None:
    """The results, of elements of which some exist."""
    dtype = _computed_in(op, x.dtype, to.dtype, span)
    if x.dtype == to.dtype == dtype:
        return _joined(op, r, span, x, to, count, clear, way)
    return _in_another(op, r, span, x, to, count, clear, way, dtype)


def _joined(
    op: str, r: ExpertReader, span: Span, x: Place, to: Place, count: int, clear: bool, way: tuple[bool, int]
) -> None:
    """The results, joined with what stands there already where that is not cleared."""
    across, planes = way
    into = to.tile() if clear else scratch(r, x.dtype, 1, -(-count * x.dtype.bytes // BLOCK_BYTES) * BLOCK_BYTES // x.dtype.bytes)
    if across:
        reduced(op, r, span, x, into, True)
    else:
        _planes(op, r, span, x, into, planes)
    if not clear:
        on(r, pr.AIV, pr.PipeBarrier("V", span))
        r.instr(f"v{REDUCE[op].joins}", to.operand, to.operand, into, cols=ix.const(count), span=span)


def _in_another(
    op: str, r: ExpertReader, span: Span, x: Place, to: Place, count: int, clear: bool, way: tuple[bool, int], dtype: DType
) -> None:
    """Each element and each result in `dtype`, and the results rounded once."""
    there, found = cast_to(r, span, x, dtype), replace(to, rows=1, cols=count)
    made = room_in(r, found, dtype, 1)
    if not clear:
        cast_into(r, span, made, found)
    on(r, pr.AIV, pr.PipeBarrier("V", span))
    _joined(op, r, span, there, made, count, clear, way)
    on(r, pr.AIV, pr.PipeBarrier("V", span))
    cast_into(r, span, found, made)


def _computed_in(op: str, of: DType, to: DType, span: Span) -> DType:
    """In what elements are reduced: in f32 where one side is a float of another type, whole numbers in 16 or 32 bits."""
    if of.whole and not to.whole:
        return I32 if of != U32 else of
    if of.whole:
        if (of != to and to.bits <= of.bits) or (of == to and of.bits == 8 and op == "sum"):
            help = "make the result a buffer of int32" if of != I32 else "make the result a buffer of int32 or float32"
            raise TileError(f"{of} is not reduced into {to}", span, help=help)
        return max(to, I16, key=lambda t: t.bits)
    if to.whole:
        raise TileError(f"{of} is not reduced into {to}", span, help="make the result a buffer of float32, and cast it then")
    return F32 if of != to or of == BF16 else of


def _magnitudes(r: ExpertReader, span: Span, x: Place) -> Place:
    """The elements without their signs."""
    if x.dtype not in (F16, F32, I16, I32):
        x = cast_to(r, span, x, F32 if not x.dtype.whole else I16 if x.dtype.bits == 8 else I32)
    made = room_in(r, x, x.dtype, 2)
    if x.dtype.whole:
        elementwise(r, span, "vmuls", made, x, scalar=-1.0)
        on(r, pr.AIV, pr.PipeBarrier("V", span))
        elementwise(r, span, "vmax", made, made, x)
    else:
        elementwise(r, span, "vabs", made, x)
    on(r, pr.AIV, pr.PipeBarrier("V", span))
    return replace(made, valid_rows=x.valid_rows, valid_cols=x.valid_cols)


def _part(r: ExpertReader, x: Place, sizes: Extents, span: Span) -> Place:
    """The first rows and columns of a window."""
    rows, cols = (1, *sizes)[-2:] if sizes else (0, 0)
    if not (isinstance(rows, int) and isinstance(cols, int)):
        valid = [n if isinstance(n, int) else r.unit.settled(r, n, span) for n in (rows, cols)]
        known_rows, known_cols = (n if isinstance(n, int) else most for n, most in ((rows, x.rows), (cols, x.cols)))
        found = _part(r, x, (known_rows, known_cols), span)
        return replace(found, valid_rows=ix.wrap(valid[0]), valid_cols=ix.wrap(valid[1]))
    if not 0 < rows <= x.rows or not 0 < cols <= x.cols:
        help = "real_shape=[rows, columns] are the first ones of the buffer"
        raise TileError(f"real_shape {[*sizes]} is not part of {x.rows} x {x.cols} elements", span, help=help)
    return replace(x, rows=rows, cols=cols, valid_rows=ix.const(rows), valid_cols=ix.const(cols))


def _planes(op: str, r: ExpertReader, span: Span, x: Place, to: Tile, planes: int) -> None:
    """The columns of each plane."""
    rows = x.rows // planes
    for n in range(planes):
        tile = replace(x.tile(), row=x.tile().row + n * rows)
        there = x.valid_rows if planes == 1 else ix.const(rows)
        plane = replace(x, operand=tile, rows=rows, valid_rows=there)
        reduced(op, r, span, plane, replace(to, col=to.col + n * x.cols), False)


def reduced(op: str, r: ExpertReader, span: Span, x: Place, to: Tile, across: bool) -> None:
    """One number for each row (`across`) or column of a window."""
    if x.dtype not in (F16, F32):
        return _whole_numbers(op, r, span, x, to, across)
    fields: dict[str, Any] = {"rows": x.valid_rows, "cols": x.valid_cols, "form": "rows", "span": span}
    lanes = REPEAT_BYTES // x.dtype.bytes
    if across and x.cols > lanes:
        fields["scratch"] = scratch(r, x.dtype, x.rows, lanes)
    r.instr(f"v{'row' if across else 'col'}{op}", to, x.operand, **fields)
    return None


def _whole_numbers(op: str, r: ExpertReader, span: Span, x: Place, to: Tile, across: bool) -> None:
    if x.dtype not in (ALL if op == "sum" else SIGNED_TOO):
        raise TileError(f"{x.dtype} is not reduced in a kernel that is kept", span, help="cast it first: T.tile.cast to int32")
    return _halves(op, r, span, x, to) if across else _rows(op, r, span, x, to)


def _rows(op: str, r: ExpertReader, span: Span, x: Place, to: Tile) -> None:
    """The first row, then each further one joined with it."""
    if x.valid_rows.value != x.rows:
        raise TileError("rows of whole numbers that a tensor's end cuts off are not reduced in the order of the statements", span,
                        help="say what stands there: T.copy(A[i, j], a, pad_value=0)")  # fmt: skip
    cols = ix.const(x.cols)
    r.instr("vcopy", to, x.operand, cols=cols, span=span)
    for n in range(1, x.rows):
        row = replace(x.tile(), row=x.tile().row + n)
        r.instr(f"v{REDUCE[op].joins}", to, to, row, cols=cols, span=span)


def _halves(op: str, r: ExpertReader, span: Span, x: Place, to: Tile) -> None:
    """Every second element joined with its neighbour, until one of each row is left."""
    width = max(power_of_two(x.cols), BLOCK_BYTES // x.dtype.bytes)
    room = scratch(r, x.dtype, 2 * x.rows, width)
    even, odd = replace(room, row=ix.const(x.rows)), replace(room, row=ix.const(x.rows), col=ix.const(_half(x, width)))
    r.instr("vdup", room, cols=ix.const(x.rows * width), scalar=neutral(op, x.dtype), span=span)
    r.instr("vcopy", room, x.operand, rows=ix.const(x.rows), cols=x.valid_cols, form="rows", span=span)
    while width > 1:
        count = x.rows * width
        for n, part in enumerate((even, odd)):
            r.instr("vevery", part, room, cols=ix.const(n + 2 * (count // 2 - 1) + 1), steps=(n, 2), span=span)
        r.instr(f"v{REDUCE[op].joins}", room, even, odd, cols=ix.const(count // 2), span=span)
        width //= 2
    r.instr("vcopy", to, room, cols=ix.const(x.rows), span=span)


def _half(x: Place, width: int) -> int:
    """Elements of half a tile, in whole blocks."""
    grain = BLOCK_BYTES // x.dtype.bytes
    return -(-x.rows * width // 2 // grain) * grain


def _sum(r: ExpertReader, span: Span, dst: Any, src: Any, count: Any) -> None:
    """dst[0] = the sum of the first elements."""
    reduced("sum", r, span, first(ub(r, src, span), count, span), ub(r, dst, span).tile(), True)


def _sums(r: ExpertReader, span: Span, dst: Any, src: Any, numbers: Any) -> None:
    """A sum of the first elements of each row; rows lie so many elements apart."""
    rows, apart, cols = (known(n, "a number of sum_experiment", span) for n in numbers)
    to, x = ub(r, dst, span), ub(r, src, span)
    pitch = x.cols if x.rows > 1 else apart
    if apart != pitch or rows > x.rows or cols > min(apart, x.cols) or to.count < rows:
        help = "T.reduce_sum(src, dst, dim=-1, real_shape=[rows, columns]) of a buffer of rows"
        what = f"sums of {rows} rows of {cols} elements, {apart} apart, are not those of {x.rows} x {x.cols}"
        raise TileError(what, span, help=help)
    reduced("sum", r, span, _part(r, x, (rows, cols), span), to.tile(), True)


WORDS: dict[str, Callable[..., Any]] = {
    **{f"reduce_{op}": partial(_reduce, op) for op in ops.REDUCE},
    **{f"reduce_abs{op}": partial(_reduce, op, magnitudes=True) for op in ("max", "sum")},
    **{name: HANDLERS[name] for name in ("reduce", "npuir_reduce", "tile.reduce_max", "tile.reduce_min", "tile.reduce_sum")},
    "tile.reduce_sum_experiment": _sum, "tile.sum_experiment": _sums,
}  # fmt: skip
