"""What the words of `tile_eg.language` for launches, loops, conditions, moves and products mean, as nodes of the kernel tree.

A handler takes the builder, the place of the call, and the call's values in the order of the word's signature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_eg.errors import Note, NotSearched, Span, TileError
from tile_eg.frontend.conditions import both, chosen, either, is_condition, opposite
from tile_eg.frontend.python.bools import as_stored, check_copied, is_bool, truth_of
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.extents import are_known, as_slices, extents_of, known, resized, sizes
from tile_eg.frontend.python.refused import check_attributes
from tile_eg.frontend.python.values import (
    Buffer,
    FirstValue,
    Launch,
    Loop,
    NewBuffer,
    Window,
    as_dtype,
    as_region,
    as_tile,
    describe,
    element,
    is_index,
    is_one_number,
    is_tile,
    region,
    start_point,
    value_buffer,
    with_rank,
)
from tile_eg.frontend.python.whole_numbers import as_whole as as_index
from tile_eg.frontend.python.whole_numbers import wrapped
from tile_eg.frontend.trips import depth, is_bounded, trips
from tile_eg.frontend.windows import known_shape
from tile_eg.ir import index
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.kernel import Cast, Pad, Region, TileExpr, Unary, Whole
from tile_eg.ops.types import BF16, F16, F32, U8, DType, spelled

SCOPES = {"shared": "shared", "shared.dyn": "shared", "local.fragment": "fragment", "local": "fragment"}
HANDLERS: dict[str, Callable[..., Any]] = {}


def handles(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return register


def _quoted(name: Any) -> str:
    return repr(name) if isinstance(name, str) else describe(name)


@handles("Kernel")
def _kernel(b: Builder, span: Span, *extents: Any, threads: Any, is_npu: Any, **_: Any) -> Launch:
    if threads is not None:
        sizes(threads, "the number of threads", span)
    if not isinstance(is_npu, bool):
        raise TileError(f"is_npu is True or False, not {describe(is_npu)}", span)
    if b.sizes and 0 in (found := [known(n, "a grid size", span) for n in extents]):
        return Launch(tuple(found))
    return Launch(sizes(extents, "a grid size", span))


@handles("func_attr")
def _attributes(b: Builder, span: Span, attrs: Any) -> None:
    check_attributes(attrs, span)


@handles("alloc_shared", "alloc_fragment")
def _alloc(b: Builder, span: Span, shape: Any, dtype: Any, scope: str) -> NewBuffer:
    kind = SCOPES.get(scope) if isinstance(scope, str) else None
    if kind is None:
        raise TileError(f"a buffer has no scope {_quoted(scope)} here", span, help="leave it out: where a buffer lies is found")
    held = U8 if is_bool(dtype) else as_dtype(dtype, span)
    return NewBuffer(kind, held, sizes(shape, "the size of a buffer", span), truth=is_bool(dtype))


@handles("alloc_var")
def _alloc_var(b: Builder, span: Span, dtype: Any, *rest: Any, init: Any, scope: Any) -> Any:
    name = spelled(dtype)
    if name != "bool":
        as_dtype(dtype, span)
    given = [v for v in (*rest, init) if v is not None and not isinstance(v, str)]
    if len(given) > 1:
        raise TileError("T.alloc_var has one init", span)
    start = given[0] if given else 0
    if isinstance(start, bool | int | float):
        return FirstValue(bool(start) if name == "bool" else float(start) if "float" in name else int(start))
    if isinstance(start, Expr):
        return FirstValue(start)
    raise TileError(f"a variable holds a number that is known when the kernel is compiled, not {describe(start)}", span)


# Loops


@handles("serial", "unroll")
def _serial(b: Builder, span: Span, start: Any, stop: Any, step: Any, **_: Any) -> Loop:
    return counted(b, span, start, stop, step)


def counted(
    b: Builder, span: Span, start: Any, stop: Any = None, step: Any = 1, kind: str = "serial", stages: int = 0
) -> Loop:
    """A loop from `start` to `stop`, or from 0 to `start`, whose ends are numbers or known when the block starts."""
    if stop is None:
        start, stop = 0, start
    start, stop = b.number(start, span), b.number(stop, span)
    if b.most is not None and _read_from(b, stop) and not b.counts_what_is_read:
        found = element(stop) if isinstance(stop, Window) else stop
        b.notes.append(Note(f"at most {b.most} trips are done: the loop's variable is an index of so many", span))
        stop = index.minimum(found, b.most)
    for end in (start, stop):
        if name := _read_from(b, end):
            message = f"the search has no form for a loop whose trips are read from `{name}`, without a size that bounds them"
            raise NotSearched(message, span, help="bound them by a size: T.min(n, S)")
    start, stop = (v if isinstance(v, bool) or (found := as_index(v)) is None else found for v in (start, stop))
    by = known(step, "the step of a loop", span)
    first, last = (index.wrap(v if isinstance(v, Expr) else known(v, "the bound of a loop", span)) for v in (start, stop))
    if first.value is not None and last.value is not None and (by < 0 or first.value < 0):
        return Loop(kind, (first,), (len(range(first.value, last.value, by)),), by, stages)
    if by <= 0:
        raise TileError("a loop that counts down has a range that is known when the kernel is compiled", span)
    extent, count = trips(first, last, by, b.blocks, span)
    return Loop(kind, (first if first.value is None else first.value,), (extent,), by, stages, count)


def _read_from(b: Builder, end: Any) -> str:
    """The array of which the end of a loop is an element, or is computed from one; empty where there is none, where a size
    bounds it, or it is known."""
    if isinstance(end, Window):
        return end.buffer.name if end.is_point else ""
    if not isinstance(end, Expr) or b.counts_what_is_read or is_bounded(end, b.blocks):
        return ""
    elements = all_elements_in(end)
    return min((str(e.args[0]) for e in elements), default="")


@handles("loop_break")
def _loop_break(b: Builder, span: Span) -> None:
    b.leave(span, False)


@handles("Pipelined")
def _pipelined(b: Builder, span: Span, start: Any, stop: Any, num_stages: Any, *_: Any, **__: Any) -> Loop:
    return counted(b, span, start, stop, 1, "pipelined", depth(known(num_stages, "num_stages", span), span))


@handles("grid")
def _grid(b: Builder, span: Span, *extents: Any) -> Loop:
    found = sizes(extents, "the extent of T.grid", span)
    return Loop("serial", (0,) * len(found), found)


# Conditions


@handles("if_then_else", "where", "Select")
def _if_then_else(b: Builder, span: Span, condition: Any, x: Any, y: Any) -> Any:
    condition = truth_of(condition, span)
    if not is_condition(condition):
        if is_tile(condition):
            raise TileError("a condition compares: x > 0, x == y, i < n", span)
        return x if condition else y
    return chosen(condition, as_tile(x, span), as_tile(y, span), span)


def _joined(word: str, join: Callable[..., Any]) -> None:
    @handles(word)
    def joined(b: Builder, span: Span, x: Any, y: Any) -> Any:
        x, y = (truth_of(v, span) for v in (x, y))
        return join(*(v if is_condition(v) else index.const(int(bool(v))) for v in (x, y)), span)


_joined("And", both)
_joined("Or", either)


@handles("Not")
def _opposite(b: Builder, span: Span, x: Any) -> Any:
    x = truth_of(x, span)
    return opposite(x, span) if is_condition(x) else not x


# Moves


@handles("copy")
def _copy(b: Builder, span: Span, src: Any, dst: Any, size: Any, **options: Any) -> None:
    turned = bool(options["transpose"])
    src, dst, size = with_extents(b, src, dst, size, span)
    to, value = copied(src, dst, size, span, turned)
    if turned:
        value = Whole("transpose", (value,), (0, 0), span)
    value = _first_of(src, dst, to, value)
    if (pad := options["pad_value"]) is not None:
        if isinstance(pad, bool) or not isinstance(pad, int | float):
            raise TileError(f"the padding is a number known when the kernel is compiled, not {describe(pad)}", span)
        value = Pad(value, float(pad), span)
    value = as_whole(value, src, dst, span)
    check_copied(src, dst, span)
    b.assign(to, Unary("relu", value, span) if options["enable_relu"] else value, span)


def with_extents(b: Builder, src: Any, dst: Any, size: Any, span: Span) -> tuple[Any, Any, tuple[int, ...] | None]:
    """Both sides of a copy and its extents; those that only the kernel knows are slices of the sides."""
    if size is None or are_known(extents := extents_of(b, size, "an extent", span)):
        return src, dst, None if size is None else sizes(size, "an extent", span)
    return *as_slices(b, src, dst, extents, span), None


def _first_of(src: Any, dst: Any, to: Region, value: TileExpr) -> TileExpr:
    """What is loaded, where that is fewer elements of a tensor than the buffer has: its first elements, of which the others are
    not there."""
    loaded = isinstance(src, (Buffer, Window)) and value_buffer(src).scope == "tensor" != value_buffer(dst).scope
    if not loaded or not isinstance(value, Region) or len(value.shape) != len(to.shape) or value.counts or value.beside:
        return value
    if value.shape == to.shape or any(n > m for n, m in zip(value.shape, to.shape, strict=True)):
        return value
    sizes_ = iter(zip(value.shape, to.shape, strict=True))
    each = [(None, None) if e is None else next(sizes_) for e in value.extents]
    counts = tuple(None if n is None or n == m else index.wrap(n) for n, m in each)
    return replace(value, extents=tuple(m for _, m in each), counts=counts)


def as_whole(value: TileExpr, src: Any, dst: Any, span: Span) -> TileExpr:
    """What a copy or a cast between two buffers does: rounded where the target holds whole numbers."""
    if not all(isinstance(v, (Buffer, Window)) for v in (src, dst)):
        return value
    to, of = value_buffer(dst).dtype, value_buffer(src).dtype
    return Cast(to, value, span) if to.whole and of != to else value


def added_extents(b: Builder, src: Any, dst: Any, size: Any, span: Span) -> tuple[Any, Any, tuple[int, ...] | None]:
    """Both sides of an addition and its extents, as those of a copy. TileError where each element of a loop has several."""
    if size is not None and b.in_parallel:
        help = "T.atomic_add(C[i, j], x[i, j]) adds one; a loop of T.serial may add several at a time"
        raise TileError("inside T.Parallel one element is added at a time", span, help=help)
    return with_extents(b, src, dst, size, span)


@handles("atomic_add", "tile.atomic_add")
def _atomic_add(b: Builder, span: Span, dst: Any, src: Any, size: Any = None, **_: Any) -> None:
    one = size is None and isinstance(dst, Window) and dst.is_point
    if one and not b.in_parallel and is_one_number(src, span):
        what = "the search has no form for a number that is added to an element"
        raise NotSearched(what, span, help="T.atomic_add(C[i], x[j]) adds an element of a buffer")
    elements = one and isinstance(src, Window) and src.is_point
    src, dst, size = added_extents(b, src, dst, size, span)
    to, value = (as_region(dst, span), as_tile(src, span)) if b.in_parallel or elements else copied(src, dst, size, span)
    b.assign(to, value, span, atomic="add")


def copied(
    src: Any, dst: Any, size: tuple[int, ...] | None, span: Span | None, turned: bool = False
) -> tuple[Region, TileExpr]:
    """Target and value of a copy: a start point gets `size`, or the extent of the other side; `turned`: rows for columns."""
    if turned:
        return _turned(src, dst, size, span)
    column = any(isinstance(v, (Buffer, Window)) and value_buffer(v).column for v in (src, dst))
    if not isinstance(src, (Buffer, Window)):
        expression = as_tile(src, span)
        return _side(dst, size, known_shape(expression), column, span), expression
    to = _side(dst, size, None if size else _shape(src, dst), column, span)
    value = _side(src, size, None if size else _shape(dst, src) or to.shape, column, span)
    rank = min(len(to.shape), len(value.shape))
    return with_rank(to, rank), with_rank(value, rank)


def _turned(src: Any, dst: Any, size: tuple[int, ...] | None, span: Span | None) -> tuple[Region, Region]:
    """Target and source of a copy of rows to columns; `size` is that of the source."""
    if not isinstance(src, (Buffer, Window)):
        raise TileError(f"a copy with transpose moves a buffer, not {describe(src)}", span)
    to = with_rank(_side(dst, size and size[::-1], _flat(_shape(src)), False, span), 2)
    value = with_rank(_side(src, size, to.shape[::-1], False, span), 2)
    if len(to.shape) != 2 or value.shape != to.shape[::-1]:
        help = "a copy with transpose takes m x n elements to n x m"
        raise TileError(f"{value.shape} of {value.name} do not become {to.shape} of {to.name}", span, help=help)
    return to, value


def _flat(shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The last two extents of a window, exchanged."""
    return shape and shape[-2:][::-1]


def _shape(value: Any, beside: Any = None) -> tuple[int, ...] | None:
    """The shape that a side of a copy has by itself; of a column x[:, j] with its 1, where the other one starts in as many
    dimensions."""
    if isinstance(value, Buffer):
        return value.shape
    if not isinstance(value, Window) or value.is_open:
        return None
    r, column = region(value), isinstance(value.items[-1], Expr)
    if column and isinstance(beside, Window) and beside.is_point and len(beside.items) == len(r.extents):
        return tuple(e or 1 for e in r.extents)
    return r.shape


def _side(value: Any, size: tuple[int, ...] | None, other: tuple[int, ...] | None, column: bool, span: Span | None) -> Region:
    if isinstance(value, Window) and value.is_open:
        shape = size or other
        if shape is None:
            message = "the size of this copy is not known: both sides are start points"
            raise TileError(message, span, help="give it as a third argument: T.copy(A[i, j], B[i, j], [m, n])")
        return start_point(value, shape, column)
    r = as_region(value, span)
    return r if size is None or size == r.shape else resized(r, size, span)


@handles("fill", "tile.fill", "clear", "tile.clear")
def _fill(b: Builder, span: Span, buffer: Any, value: Any = 0.0) -> None:
    if is_tile(value):
        value = _scalar(value, span)
    if isinstance(value, str | list | tuple | None):
        raise TileError(f"a buffer is filled with a number, not {describe(value)}", span, help="T.fill(x, 0.0)")
    b.assign(as_region(buffer, span), as_stored(buffer, value, span), span)


def _scalar(value: Any, span: Span | None) -> TileExpr:
    if isinstance(value, Window) and value.is_point:
        return region(value)
    if not isinstance(value, Buffer | Window) and known_shape(value) == ():
        return as_tile(value, span)
    raise TileError(f"a number is needed here, not {describe(value)}", span)


@handles("cast")
def cast(b: Builder, span: Span, x: Any, dtype: Any) -> TileExpr:
    to = as_dtype(dtype, span)
    if to.whole and is_index(x):
        x = wrapped(x, to)
    return Cast(to, as_tile(x, span), span)


@handles("Cast")
def _typed(b: Builder, span: Span, dtype: Any, x: Any) -> TileExpr:
    return cast(b, span, x, dtype)


@handles("tile.cast")
def _tile_cast(b: Builder, span: Span, dst: Any, src: Any, mode: str, count: Any) -> None:
    to, value = copied(src, dst, None, span)
    whole_count(count, to, span)
    of = value_buffer(src).dtype if isinstance(src, (Buffer, Window)) else None
    b.assign(to, as_whole(rounded_as(mode, value, dst, span, of), src, dst, span), span)


MODES = {"FLOOR": "floor", "CEIL": "ceil", "TRUNC": "trunc", "ROUND": "round_away"}
"""Modes beside CAST_NONE and CAST_RINT, which round to nearest even where a cast rounds, and how they round to a whole number."""
ODD = "ODD"
"""Cuts off what does not fit, and sets the last bit where that is anything: of float32 in float16 alone."""


def rounded_as(mode: Any, value: TileExpr, dst: Any, span: Span, of: DType | None = None) -> TileExpr:
    """What a cast of an element type (`of`) rounds to the nearest, after the rounding that its mode names.

    f32 is rounded to whole numbers where it stays f32, and a cast from a shorter type to it is exact.
    """
    name = mode.upper().removeprefix("CAST_") if isinstance(mode, str) else ""
    to = value_buffer(dst).dtype if isinstance(dst, (Buffer, Window)) else None
    if name == "RINT" and to == of == F32:
        return Unary("round", value, span)
    if name in ("NONE", "RINT"):
        return value
    if name not in (*MODES, ODD):
        help = f"there are CAST_NONE, CAST_RINT, {', '.join(f'CAST_{m}' for m in MODES)}, and CAST_{ODD} of float32 in float16"
        raise TileError(f"the rounding mode {_quoted(mode)} is not supported", span, help=help)
    if of == F32 and to == F16 or (of == F32 and to == BF16 and name != ODD):
        raise NotSearched(f"the search has no form for a cast of float32 to {to} with {mode}", span, help="CAST_RINT is searched")
    if to is None or name == ODD or not (to.whole or to.bits == 32):
        message = f"no instruction casts {of} to {to} with {mode}"
        raise TileError(message, span, help="CAST_RINT rounds to the nearest number, CAST_ODD is of float32 in float16 alone")
    return value if to == F32 and of in (F16, BF16) else Unary(MODES[name], value, span)


def whole_count(count: Any, to: Region, span: Span | None) -> None:
    """NotSearched where a word works on the first elements of a buffer alone; nothing lies behind its last one."""
    if count is not None and known(count, "a count", span) < math.prod(to.shape):
        what = f"a count of {count} is not the whole of {to.name}, which has {math.prod(to.shape)} elements"
        raise NotSearched(f"{what}: the search has no form for that", span, help="leave it out, or slice the buffer")


@handles("vcast")
def _vcast(b: Builder, span: Span, src: Any, dst: Any, round_mode: str, size: Any) -> None:
    to, value = copied(src, dst, None if size is None else sizes(size, "an extent", span), span)
    b.assign(to, as_whole(rounded_as(round_mode, value, dst, span), src, dst, span), span)
