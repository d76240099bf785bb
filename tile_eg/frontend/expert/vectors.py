"""The vector words of a kernel that is kept: one instruction each, on buffers in UB."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.checks.numbers import check_number
from tile_eg.frontend.expert.extents import NOT_FOLLOWED
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader, on
from tile_eg.frontend.expert.scalars import drained, formula, is_scalar, negative, reciprocal
from tile_eg.frontend.expert.unaligned import aligned, back, is_unaligned, room
from tile_eg.frontend.python.values import Window, as_region, describe, is_tile
from tile_eg.frontend.python.words import MODES, ODD, known
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import ONE, Expr
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ir.program import Formula, Tile, When
from tile_eg.ops.casts import is_direct
from tile_eg.ops.types import F16, F32, I32, DType, Level

READ_TOO = ("vaxpy", "vmuladd")
"""Instructions that add to what their result was."""


def ub(r: ExpertReader, value: Any, span: Span, counted: bool = False) -> Place:
    """A buffer in UB, or a part of one; `counted`: it may have as many elements as only the kernel knows."""
    if not is_tile(value):
        raise TileError(f"a buffer is needed here, not {describe(value)}", span)
    found = r.place(as_region(value, span), span, Level.UB)
    if found.counted and not counted:
        raise TileError("how many elements a vector word works on has to be known", span,
                        help="a copy takes slices like this one")  # fmt: skip
    return found


def elementwise(r: ExpertReader, span: Span, op: str, dst: Place, *srcs: Place, **fields: Any) -> None:
    """One instruction over all elements, where the rows and numbers exist that it takes alone."""
    there = _there(r, dst, srcs, fields.get("value"))
    if there.value == 1:
        return _elementwise(r, span, op, dst, *srcs, **fields)
    with r.block(repeats=False) as then, r.where(there):
        _elementwise(r, span, op, dst, *srcs, **fields)
    return r.place_node(None, When(there, tuple(then)))  # type: ignore[arg-type]


def _there(r: ExpertReader, dst: Place, srcs: tuple[Place, ...], value: Formula | None) -> Expr:
    """That the single rows among the operands exist, and the elements of a number; one at the result's own row matters not."""
    if r.ends is None:
        return ix.ONE
    own = dst.tile()
    found = ix.ONE if value is None else r.ends.there(r, value, own)
    for p in srcs:
        row, (down, _) = p.tile().row, r.ends.known.get(p.tile().buffer, NOT_FOLLOWED)
        if p.rows == 1 and down is not None and row != own.row and ix.bounds(row - down, r.ranges)[1] >= 0:
            found = ix.both(found, ix.less(row, down))
    return found


def _as_many(r: ExpertReader, span: Span, op: str, dst: Place, *srcs: Place, **fields: Any) -> None:
    """Row by row over as many elements as all operands have, which only the kernel knows; nothing where there are none."""
    places = (dst, *srcs)
    if len({(p.rows, p.cols) for p in places}) > 1:
        what = "parts whose length varies begin in the same row and column of buffers of one shape, and are as long"
        raise TileError(what, span, help="slice all operands alike: T.vadd(a[:n, :], b[:n, :], c[:n, :])")
    if any(is_unaligned(r, p) for p in places):
        what = "parts whose length varies are computed in rows of a multiple of 32 bytes"
        raise TileError(what, span, help="declare wider rows: the last dimension a multiple of 32 bytes")
    rows, cols = (reduce(ix.minimum, found) for found in ([p.valid_rows for p in places], [p.valid_cols for p in places]))
    rows, cols = (ix.simplified(n, r.ranges) for n in (rows, cols))
    some = ix.both(ix.less(0, rows), ix.less(0, cols))
    made = pr.Instr(op, dst.operand, tuple(p.operand for p in srcs), rows=rows, cols=cols, form="rows", span=span, **fields)
    with r.block(repeats=False) as then, r.where(some):
        r.emit(made)
    r.place_node(None, When(some, tuple(then)))  # type: ignore[arg-type]


def _elementwise(r: ExpertReader, span: Span, op: str, dst: Place, *srcs: Place, **fields: Any) -> None:
    """In one run where each operand is one, else row by row."""
    places = (dst, *srcs)
    if any(p.counted for p in places):
        return _as_many(r, span, op, dst, *srcs, **fields)
    runs = all(p.whole for p in places) and len({p.count for p in places}) == 1
    if runs and not any(is_unaligned(r, replace(p, rows=1)) for p in places):
        r.instr(op, dst.operand, *(p.operand for p in srcs), cols=ix.const(dst.count), span=span, **fields)
        return None
    if len({(p.rows, p.cols) for p in places}) > 1:
        shapes = ", ".join(f"{p.rows} x {p.cols}" for p in places)
        raise TileError(f"the operands differ in size: {shapes}", span, help="T.tile.broadcast spreads a row or a column")
    if any(is_unaligned(r, p) for p in places):
        return _copied_apart(r, span, op, dst, *srcs, **fields)
    rows, cols = ix.const(dst.rows), ix.const(dst.cols)
    r.instr(op, dst.operand, *(p.operand for p in srcs), rows=rows, cols=cols, form="rows", span=span, **fields)
    return None


def _copied_apart(r: ExpertReader, span: Span, op: str, dst: Place, *srcs: Place, **fields: Any) -> None:
    """The instruction on copies of the windows whose rows do not begin at multiples of 32 bytes."""
    made = [aligned(r, span, p, n) for n, p in enumerate((dst, *srcs))] if op in READ_TOO else [
        room(r, dst) if is_unaligned(r, dst) else dst, *(aligned(r, span, p, n) for n, p in enumerate(srcs, 1))]  # fmt: skip
    rows, cols = ix.const(dst.rows), ix.const(dst.cols)
    r.instr(op, made[0].operand, *(p.operand for p in made[1:]), rows=rows, cols=cols, form="rows", span=span, **fields)
    if made[0] is not dst:
        back(r, span, dst, made[0])


def filled(r: ExpertReader, span: Span, dst: Place, value: Any) -> None:
    """Every element becomes the number, or what the scalar unit computes."""
    if isinstance(value, bool | int | float):
        check_number(dst.dtype, value, span)
        elementwise(r, span, "vdup", dst, scalar=float(value))
    else:
        elementwise(r, span, "vdup", dst, value=formula(r, value, span))


def unary(op: str, r: ExpertReader, span: Span, dst: Any, src: Any) -> None:
    """A function with an instruction of its own."""
    elementwise(r, span, f"v{op}", ub(r, dst, span, True), ub(r, src, span, True))


def _binary(op: str, r: ExpertReader, span: Span, dst: Any, a: Any, b: Any) -> None:
    to, x = ub(r, dst, span, True), ub(r, a, span, True)
    if is_scalar(b) and not (isinstance(b, Window) and r.place(b, span).count == to.count == 1 and not b.is_point):
        drained(r, b, span)
        return _with_scalar(op, r, span, to, x, b)
    elementwise(r, span, f"v{op}", to, x, ub(r, b, span, True))
    return None


def _with_scalar(op: str, r: ExpertReader, span: Span, to: Place, x: Place, b: Any) -> None:
    """a - s is a + (-s), and a / s is a * (1 / s): there are no other instructions with a scalar."""
    plain = isinstance(b, bool | int | float)
    if plain:
        check_number(x.dtype, b, span)
    if op == "sub":
        op, b = "add", (-b if plain else negative(formula(r, b, span)))
    elif op == "div":
        if plain and b == 0:
            raise TileError("division by zero", span)
        op, b = "mul", (1 / b if plain else reciprocal(formula(r, b, span)))
    field: dict[str, Any] = {"scalar": float(b)} if plain else {"value": b if isinstance(b, Formula) else formula(r, b, span)}
    elementwise(r, span, f"v{op}s", to, x, **field)


def _axpy(r: ExpertReader, span: Span, dst: Any, a: Any, b: Any) -> None:
    field = {"scalar": float(b)} if isinstance(b, bool | int | float) else {"value": formula(r, b, span)}
    elementwise(r, span, "vaxpy", ub(r, dst, span), ub(r, a, span), **field)


def _mul_add(r: ExpertReader, span: Span, dst: Any, a: Any, b: Any) -> None:
    elementwise(r, span, "vmuladd", ub(r, dst, span), ub(r, a, span), ub(r, b, span))


def _cast(r: ExpertReader, span: Span, dst: Any, src: Any, mode: Any = "CAST_NONE", count: Any = None) -> None:
    to, x = ub(r, dst, span), ub(r, src, span)
    to, x = (first(p, count, span) for p in (to, x))
    cast(r, span, to, x, mode)


def cast(r: ExpertReader, span: Span, to: Place, x: Place, mode: str = "CAST_NONE") -> None:
    """to = x in its element type; of int32 in float16 times the number that T.set_deq_scale named."""
    if to.dtype == x.dtype:
        return elementwise(r, span, "vcopy", to, x)
    if (x.dtype, to.dtype) == (I32, F16):
        return elementwise(r, span, "vcast", to, x, scalar=scale_of(r, span))
    if mode == f"CAST_{ODD}" and (x.dtype, to.dtype) != (F32, F16):
        help = "CAST_RINT rounds to the nearest number, CAST_ODD is of float32 in float16 alone"
        raise TileError(f"no instruction casts {x.dtype} to {to.dtype} with {mode}", span, help=help)
    odd = (f"CAST_{ODD}",) if (x.dtype, to.dtype) == (F32, F16) else ()
    if mode not in (modes := ("CAST_NONE", "CAST_RINT", *(f"CAST_{m}" for m in MODES), *odd)):
        help = "there are " + ", ".join(modes)
        raise TileError(f"the rounding mode {mode} is not supported", span, help=help)
    if not is_direct(x.dtype, to.dtype):
        help = "T.tile.cast(dst, src, mode, count) of two buffers does it in steps"
        raise TileError(f"no instruction casts {x.dtype} to {to.dtype}", span, help=help)
    return elementwise(r, span, "vcast", to, x, mode="" if mode in ("CAST_NONE", "CAST_RINT") else mode)


def _round(r: ExpertReader, span: Span, out: Any, buffer: Any, count: Any = None) -> None:
    to, x = (first(ub(r, p, span), count, span) for p in (out, buffer))
    elementwise(r, span, "vround", to, x)


def scale_of(r: ExpertReader, span: Span) -> float:
    """The number that int32 is multiplied by on its way to float16. TileError where none was named."""
    if r.scale is None:
        raise TileError("float16 of int32 takes a scale", span, help="T.set_deq_scale(1.0) before it")
    return r.scale


def _deq_scale(r: ExpertReader, span: Span, scale: Any) -> None:
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise TileError(f"the scale is a number known when the kernel is compiled, not {describe(scale)}", span)
    if r.outer and r.scale != float(scale):
        raise TileError("the scale changes inside a loop or branch", span, help="set it once, before the loop")
    r.scale = float(scale)


def first(p: Place, count: Any, span: Span) -> Place:
    """The first `count` elements of a window."""
    if count is None or known(count, "a count", span) == p.count:
        return p
    if not p.whole or known(count, "a count", span) > p.count:
        raise TileError(f"a count of {count} is not a part of {p.count} elements in a row", span)
    return replace(p, rows=1, cols=count, valid_rows=ONE, valid_cols=ix.const(count))


def _clamp(ends: str, r: ExpertReader, span: Span, out: Any, buffer: Any, *bounds: Any, count: Any = None) -> None:
    numbers = list(bounds)
    if len(numbers) > len(ends):
        count = numbers.pop()
    to, x = (first(ub(r, v, span), count, span) for v in (out, buffer))
    for end, bound in zip(ends, numbers, strict=True):
        _with_scalar("max" if end == "l" else "min", r, span, to, x, bound)
        x = to


def _counted(op: str, r: ExpertReader, span: Span, dst: Any, a: Any, *rest: Any) -> None:
    """An operation on the first elements of its buffers; the last argument says on how many."""
    *others, count = rest
    to, x = (first(ub(r, v, span), count, span) for v in (dst, a))
    if others and is_scalar(others[0]):
        return _with_scalar(op, r, span, to, x, others[0])
    elementwise(r, span, f"v{op}", to, x, *(first(ub(r, v, span), count, span) for v in others))
    return None


# Reductions and broadcasts


def scratch(r: ExpertReader, dtype: DType, rows: int, cols: int) -> Tile:
    """Room in UB that an instruction takes for itself."""
    key = f"scratch {dtype} {rows} {cols}"
    if key not in r.own_keys:
        r.own_keys[key] = name = r.unique("scratch")
        r.own[name] = pr.Buffer(name, Level.UB, dtype, rows, cols, cols)
    return Tile(r.own_keys[key])


def _broadcast(r: ExpertReader, span: Span, dst: Any, src: Any, axis: Any = None, *_: Any) -> None:
    """A row to all rows, a column to all columns, or a number."""
    to = ub(r, dst, span)
    if is_scalar(src):
        return filled(r, span, to, src)
    x = ub(r, src, span)
    if x.count == to.count:
        return elementwise(r, span, "vcopy", to, x)
    return _spread(r, span, to, x, spread_down(to, x, axis, span))


def spread_down(to: Place, x: Place, axis: Any, span: Span) -> bool:
    """Whether a vector is a row that goes down the rows, not a column."""
    down = x.count == to.cols and (axis == 0 or (axis is None and not (x.cols == 1 and x.rows == to.rows)))
    if not down and x.count != to.rows:
        raise TileError(f"{x.rows} x {x.cols} elements cannot be spread over {to.rows} x {to.cols}", span)
    return down


def _spread(r: ExpertReader, span: Span, to: Place, x: Place, down: bool) -> None:
    """Zeros, to which each row adds the vector, or its own element of it: -0.0 becomes 0.0, all else is exact."""
    filled(r, span, to, 0.0)
    second = x.operand
    if not down:
        second = scratch(r, x.dtype, -(-to.rows // 8) * 8, BLOCK_BYTES // x.dtype.bytes)
        r.instr("vbrcb", second, x.operand, rows=ix.const(to.rows), span=span)
    on(r, pr.AIV, pr.PipeBarrier("V", span))
    rows, cols = ix.const(to.rows), ix.const(to.cols)
    kind = "cols" if down else "rows"
    r.instr(f"vadd_{kind}", to.operand, to.operand, second, rows=rows, cols=cols, form="rows", span=span)


WORDS: dict[str, Callable[..., Any]] = {
    "tile.sub_experiment": partial(_counted, "sub"), "tile.mins_experiment": partial(_counted, "min"),
    "tile.abs_experiment": partial(_counted, "abs"),
    "tile.axpy": _axpy, "tile.mul_add_dst": _mul_add,
    "tile.cast": _cast, "set_deq_scale": _deq_scale, "tile.broadcast": _broadcast, "tile.clamp_min": partial(_clamp, "l"),
    "tile.clamp_max": partial(_clamp, "h"), "tile.clamp": partial(_clamp, "lh"),
    "tile.round": _round,
    **{f"tile.{op}": partial(_binary, op) for op in ("add", "sub", "mul", "div", "max", "min")},
}  # fmt: skip
