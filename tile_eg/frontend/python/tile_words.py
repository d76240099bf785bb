"""What the words of `tile_eg.language` that compute on tiles mean: reductions, broadcasts, and elementwise words."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from tile_eg.errors import Note, NotSearched, Span, TileError
from tile_eg.frontend.made_words import apply
from tile_eg.frontend.of_calls import divisor
from tile_eg.frontend.python import whole_numbers
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.extents import Extents, counted, extents_of
from tile_eg.frontend.python.product_words import HANDLERS
from tile_eg.frontend.python.values import (
    Buffer,
    Window,
    as_region,
    as_tile,
    describe,
    element,
    is_index,
    is_tile,
    is_whole,
    region,
    value_buffer,
    whole,
    with_rank,
)
from tile_eg.frontend.python.words import copied, handles, known, resized, whole_count
from tile_eg.frontend.whole_quotients import divided
from tile_eg.frontend.widened import wide_operand
from tile_eg.frontend.windows import known_shape
from tile_eg.ir import index
from tile_eg.ir.kernel import Binary, Broadcast, Reduce, Region, TileExpr, Unary
from tile_eg.language.elementwise_words import BINARY, EXPRESSIONS, UNARY, VECTOR_BINARY
from tile_eg.ops import elementwise
from tile_eg.ops.types import F32, DType

__all__ = ["HANDLERS", "apply"]

# Reductions and broadcasts


def _reduce(
    op: str, b: Builder, span: Span, buffer: Any, out: Any, dim: Any, clear: Any, real_shape: Any, size: Any = None
) -> TileExpr | None:
    x, real_shape = as_tile(buffer, span), size if real_shape is None else real_shape
    if real_shape is not None:
        x = _first(x, extents_of(b, real_shape, "real_shape", span), span)
    shape = known_shape(x) or ()
    if len(shape) == 4 and out is not None and isinstance(x, Region):
        _each_of_three(op, b, span, x, as_region(out, span), known(dim, "dim", span), clear)
        return None
    if len(shape) == 3 and out is not None and isinstance(x, Region):
        _planes(op, b, span, x, as_region(out, span), known(dim, "dim", span), clear)
        return None
    axis = _axis(dim, shape, buffer, span)
    if out is None:
        return Reduce(op, x, axis, span)
    to = with_rank(as_region(out, span), len(shape) - 1)
    value = Reduce(op, x, axis, span)
    kept = known_shape(value)
    if real_shape is not None and kept and kept != to.shape:
        to = resized(to, kept, span)
    b.assign(to, value if clear else Binary("add" if op == "sum" else op, to, value, span), span)
    return None


def _each_of_three(op: str, b: Builder, span: Span, x: Region, out: Region, dim: int, clear: Any) -> None:
    """A tile of four dimensions, by the first one, over which it is not reduced."""
    if dim % 4 == 0 or not -4 <= dim < 4 or out.shape[:1] != x.shape[:1]:
        what = f"dim {dim} of a tile of shape {x.shape} does not give {out.name}, whose shape is {out.shape}"
        raise TileError(what, span, help="dims are 1 to 3; -1 is the last, and the result has the other three, or 1 beside them")
    for n in range(x.shape[0]):
        _planes(op, b, span, _plane(x, n), _plane(out, n), dim % 4 - 1, clear)


def _planes(op: str, b: Builder, span: Span, x: Region, out: Region, dim: int, clear: Any) -> None:
    """A tile of three dimensions, plane by plane; over the first one, each plane joins the result."""
    if -3 <= dim < 3 and len(out.shape) == 3 and out.shape[dim] == 1:
        out = _plane(out, 0, dim % 3)
    if not -3 <= dim < 3 or len(out.shape) != 2:
        what = f"dim {dim} of a tile of shape {x.shape} does not give {out.name}, whose shape is {out.shape}"
        raise TileError(what, span, help="dims are 0 to 2; -1 is the last, and the result has the other two, or 1 beside them")
    for n in range(x.shape[0]):
        plane = _plane(x, n)
        if dim % 3:
            to, value = _plane(out, n), Reduce(op, plane, dim % 3 - 1, span)
            b.assign(to, value if clear else Binary("add" if op == "sum" else op, to, value, span), span)
        else:
            one = wide_operand(op, plane, b.dtype_of(out.name), b.dtype_of)
            joined = Binary("add" if op == "sum" else op, out, one, span)
            b.assign(out, one if clear and n == 0 else joined, span)


def _plane(r: Region, n: int, dim: int = 0) -> Region:
    """The n-th of a window's dimension `dim`."""
    axis = [a for a, e in enumerate(r.extents) if e is not None][dim]
    starts, extents = list(r.starts), list(r.extents)
    starts[axis], extents[axis] = starts[axis] + n, None
    return replace(r, starts=tuple(starts), extents=tuple(extents))


def _first(x: TileExpr, shape: Extents, span: Span) -> TileExpr:
    """The first rows and columns of a buffer, as `real_shape` says."""
    if not isinstance(x, Region):
        raise TileError("real_shape says how much of a buffer is reduced, not of a value", span)
    sizes = tuple(n for n in shape if isinstance(n, int))
    if len(x.shape) == len(shape) and any(isinstance(n, int) and n > m for n, m in zip(shape, x.shape, strict=True)):
        raise TileError(f"real_shape {shape} is more than {x.name} has there: {x.shape}", span)
    if len(sizes) < len(shape):
        return counted(x, shape, span)
    return x if x.shape == sizes else resized(x, sizes, span)


def _axis(dim: Any, shape: tuple[int, ...], buffer: Any, span: Span) -> int:
    """The axis of a reduction over `dim`; a vector is a tile of one row."""
    rank, axis = len(shape), known(dim, "dim", span)
    if isinstance(buffer, (Buffer, Window)) and value_buffer(buffer).column and axis in (1, -1):
        raise TileError("a row of one column needs no reduction", span)
    if rank not in (1, 2) or not -rank <= axis < rank:
        help = f"dims are 0 to {len(shape) - 1}; -1 is the last"
        raise TileError(f"dim {axis} does not exist in a tile of shape {shape}", span, help=help)
    return 1 if rank == 1 else axis % rank


def _tile_reduce(op: str, b: Builder, span: Span, dst: Any, src: Any, tmp: Any, dim: Any, size: Any) -> Any:
    """`T.tile.reduce_max(m, x, tmp, dim=-1)`: where its instructions compute in between is found."""
    return (b.handlers or HANDLERS)[f"reduce_{op}"](b, span, src, dst, dim, True, size)


for _op in ("max", "min", "sum"):
    HANDLERS["reduce_" + _op] = partial(_reduce, _op)
    HANDLERS["tile.reduce_" + _op] = partial(_tile_reduce, _op)


@handles("tile.broadcast")
def _broadcast(b: Builder, span: Span, dst: Any, src: Any, axis: Any) -> None:
    to = as_region(dst, span)
    if axis not in (None, 0, 1):
        raise TileError(f"axis is 0 (the vector is a row) or 1 (it is a column), not {describe(axis)}", span)
    value = _row_or_column(b, src, to, axis, span) if isinstance(src, (Buffer, Window)) else as_tile(src, span)
    b.assign(to, value, span)


def _row_or_column(b: Builder, src: Buffer | Window, to: Region, axis: int | None, span: Span) -> TileExpr:
    """`src` spread over a tile: a vector as long as a row is a row, unless it is written as a column or `axis` says so.

    Where it is as long as a column too, as TileLang takes it for a row, a note says so.
    """
    r = region(src) if isinstance(src, Window) else whole(src, span)
    if r.shape in ((), to.shape):
        return r
    if len(r.shape) == 2 and len(to.shape) == 2 and 1 in r.shape:
        axis = 1 if r.shape[1] == 1 else 0
        r = Region(r.name, r.starts, tuple(None if e == 1 else e for e in r.extents) if r.shape != (1, 1) else r.extents, r.span)
    if axis is None:
        axis = 1 if value_buffer(src).column or r.shape[0] != to.shape[-1] else 0
        if axis == 0 and to.shape == 2 * r.shape and not _one_row(src):
            text = f"`{r.name}` is as long as a row of `{to.name}` and as a column: it is taken for a row; axis=1: for a column"
            b.notes.append(Note(text, span))
    return Broadcast(r, axis, span)


def _one_row(src: Buffer | Window) -> bool:
    """Whether a vector is written as a row of a tile."""
    return len(value_buffer(src).written) == 2 and value_buffer(src).written[0] == 1


@handles("vbrc")
def _vbrc(b: Builder, span: Span, src: Any, dst: Any) -> None:
    _broadcast(b, span, dst, src, None)


# Elementwise words


def _tile_unary(op: str, b: Builder, span: Span, dst: Any, src: Any) -> None:
    to, value = copied(src, dst, None, span)
    b.assign(to, apply(op, value, span), span)


def _vector_unary(op: str, b: Builder, span: Span, src: Any, dst: Any) -> None:
    _check_bits(op, b.dtype_of(as_region(dst, span).name), span)
    _tile_unary(op, b, span, dst, src)


def _unary(op: str, b: Builder, span: Span, x: Any, dst: Any) -> TileExpr | None:
    if dst is None:
        return apply(op, as_tile(x, span), span)
    _tile_unary(op, b, span, dst, x)
    return None


def _tile_binary(op: str, b: Builder, span: Span, dst: Any, x: Any, y: Any) -> None:
    to = as_region(dst, span)
    left, right = (_one_row_as_vector(as_tile(v, span), to) for v in (x, y))
    b.assign(to, Binary(op, left, right, span), span)


def _one_row_as_vector(x: TileExpr, to: Region) -> TileExpr:
    """A tile of one row beside a row, such as x[i, :], as the vector that it holds."""
    return with_rank(x, 1) if isinstance(x, Region) and len(x.shape) == 2 and len(to.shape) == 1 else x


def _vector_binary(op: str, b: Builder, span: Span, x: Any, y: Any, dst: Any) -> None:
    """Dimensions of one element, and those that an operand lacks, stand for all elements of the destination's."""
    to = as_region(dst, span)
    left, right = (_as_large(v, to, span) for v in (x, y))
    of = b.dtype_of(to.name)
    _check_bits(op, of, span)
    quotient = op == "div" and of is not None and of.whole
    b.assign(to, divided("T.floordiv", left, right, b.dtype_of, span) if quotient else Binary(op, left, right, span), span)


def _check_bits(op: str, of: DType | None, span: Span) -> None:
    """NotSearched for bits of floats, which are whole numbers only where statements are done in their order."""
    if of is not None and not of.whole and F32 not in (elementwise.BINARY | elementwise.UNARY)[op].takes:
        raise NotSearched(f"the search has no form for the bits of {of}", span, help="cast to a type of whole numbers")


def _as_large(v: Any, to: Region, span: Span) -> TileExpr:
    """An operand as a tile of the destination's shape: a row or a column of a buffer for all of them, an element for each."""
    x = _one_row_as_vector(as_tile(v, span), to)
    if not isinstance(x, Region) or not isinstance(v, Buffer | Window) or x.shape in ((), to.shape) or len(to.shape) != 2:
        return x
    if math.prod(x.shape) == 1:
        return replace(x, extents=(None,) * len(x.extents))
    rows, cols = (1, *(e or 1 for e in x.extents))[-2:]
    if value_buffer(v).column or (rows, cols) not in ((1, to.shape[1]), (to.shape[0], 1)):
        return x
    return Broadcast(with_rank(x, 1), 0 if rows == 1 else 1, span)


for _name, _op in UNARY.items():
    HANDLERS["tile." + _name] = partial(_tile_unary, _op)
    HANDLERS["v" + _name] = partial(_vector_unary, _op)
    HANDLERS[_name] = partial(_unary, _op)
for _name, _op in BINARY.items():
    HANDLERS["tile." + _name] = partial(_tile_binary, _op)
for _name, _op in VECTOR_BINARY.items():
    HANDLERS[_name] = partial(_vector_binary, _op)
HANDLERS["vnot"] = partial(_vector_unary, "not")


def _pair(op: str, b: Builder, span: Span, x: Any, y: Any) -> Any:
    return Binary(op, as_tile(x, span), as_tile(y, span), span)


for _name in EXPRESSIONS:
    HANDLERS[_name] = partial(_pair, BINARY[_name])


@handles("tile.round")
def _round(b: Builder, span: Span, out: Any, buffer: Any, count: Any) -> None:
    whole_count(count, as_region(out, span), span)
    _tile_unary("round", b, span, out, buffer)


def _magnitudes(op: str, b: Builder, span: Span, buffer: Any, out: Any, *rest: Any) -> TileExpr | None:
    return _reduce(op, b, span, Unary("abs", as_tile(buffer, span), span), out, *rest)


HANDLERS["reduce_absmax"] = partial(_magnitudes, "max")
HANDLERS["reduce_abssum"] = partial(_magnitudes, "sum")


@handles("tile.axpy", "tile.mul_add_dst")
def _multiply_add(b: Builder, span: Span, dst: Any, x: Any, y: Any) -> None:
    to = as_region(dst, span)
    b.assign(to, Binary("add", to, Binary("mul", as_tile(x, span), as_tile(y, span), span), span), span)


def _bound(op: str, b: Builder, span: Span, out: Any, buffer: Any, bound: Any, count: Any) -> None:
    to = as_region(out, span)
    whole_count(count, to, span)
    b.assign(to, Binary(op, as_tile(buffer, span), as_tile(bound, span), span), span)


HANDLERS["tile.clamp_min"] = partial(_bound, "max")
HANDLERS["tile.clamp_max"] = partial(_bound, "min")


def _counted(op: str, b: Builder, span: Span, dst: Any, x: Any, *rest: Any) -> None:
    """A word that says how many elements it works on: all of them."""
    *others, count = rest
    whole_count(count, as_region(dst, span), span)
    (_tile_binary if others else _tile_unary)(op, b, span, dst, x, *others)


HANDLERS["tile.sub_experiment"] = partial(_counted, "sub")
HANDLERS["tile.mins_experiment"] = partial(_counted, "min")
HANDLERS["tile.abs_experiment"] = partial(_counted, "abs")


@handles("tile.clamp")
def _clamp(b: Builder, span: Span, out: Any, buffer: Any, low: Any, high: Any, count: Any) -> None:
    to = as_region(out, span)
    whole_count(count, to, span)
    above = Binary("max", as_tile(buffer, span), as_tile(low, span), span)
    b.assign(to, Binary("min", above, as_tile(high, span), span), span)


@handles("clamp")
def _within(b: Builder, span: Span, x: Any, min_val: Any, max_val: Any) -> TileExpr:
    return Binary("min", Binary("max", as_tile(x, span), as_tile(min_val, span), span), as_tile(max_val, span), span)


def _extreme(op: str, b: Builder, span: Span, x: Any, y: Any) -> Any:
    if is_whole(x) and is_whole(y) and (b.in_index or not b.in_parallel):
        x, y = (element(v) if isinstance(v, Window) else v for v in (x, y))
    if is_index(x) and is_index(y):
        return (index.minimum if op == "min" else index.maximum)(x, y)
    return Binary(op, as_tile(x, span), as_tile(y, span), span)


HANDLERS["max"] = partial(_extreme, "max")
HANDLERS["min"] = partial(_extreme, "min")
HANDLERS["Max"] = HANDLERS["max"]
HANDLERS["Min"] = HANDLERS["min"]


def _divided(word: str, b: Builder, span: Span, x: Any, y: Any) -> index.Expr:
    """What T.ceildiv, T.floordiv and T.floormod are of indices."""
    x, y = (_read(b, v) for v in (x, y))
    for v in (x, y):
        if not is_index(v):
            what = "an element of a buffer, which is known only at run time" if isinstance(v, Window) else describe(v)
            raise TileError(f"T.{word} takes whole numbers, not {what}", span, help="of values, write x / y")
    if isinstance(y, int) and y <= 0:
        raise TileError(f"T.{word} divides by a number above 0, not by {y}", span)
    x, y = index.wrap(x), index.wrap(divisor(y, span))
    return index.mod(x, y) if word == "floormod" else index.div(x + (y - 1) if word == "ceildiv" else x, y)


def _read(b: Builder, v: Any) -> Any:
    """A whole number of a tensor or buffer as an index, where it is one number."""
    return element(v) if isinstance(v, Window) and is_whole(v) and (b.in_index or not b.in_parallel) else v


def _rounded_down(word: str, b: Builder, span: Span, x: Any, y: Any) -> Any:
    """x // y or x % y, of indices or of tiles."""
    x, y = (_read(b, v) for v in (x, y))
    if not (is_tile(x) or is_tile(y)):
        return _divided(word, b, span, x, y)
    x, y = (v if (found := whole_numbers.as_whole(v)) is None else found for v in (x, y))
    return divided(f"T.{word}", as_tile(x, span), as_tile(y, span), b.divided_type, span)


HANDLERS["ceildiv"] = partial(_divided, "ceildiv")


@handles("align_up")
def _align_up(b: Builder, span: Span, x: Any, y: Any) -> Any:
    whole = HANDLERS["ceildiv"](b, span, x, y)
    return Binary("mul", whole, as_tile(y, span), span) if is_tile(whole) else whole * y
HANDLERS["floordiv"] = partial(_rounded_down, "floordiv")
HANDLERS["floormod"] = partial(_rounded_down, "floormod")
HANDLERS["fmod"] = lambda b, span, x, y: divided("T.fmod", as_tile(x, span), as_tile(y, span), b.divided_type, span)


MODES = ("sum", "max", "min", "abssum", "absmax")


def _by_mode(b: Builder, span: Span, buffer: Any, out: Any, dims: Any, mode: Any, size: Any, clear: Any, **others: Any) -> Any:
    """`T.reduce(x, m, dims=[1], reduce_mode="max")`, and TileLang's `T.reduce(x, m, "max", 1, True)`."""
    if isinstance(dims, str):
        dims, mode, clear = mode, dims, clear if size is None else size
        size = None
    mode, dims = others["reduce_type"] or mode, others["dim"] if dims is None else dims
    if mode not in MODES:
        raise TileError(f"T.reduce has no mode {describe(mode)}", span, help=f"reduce_mode is one of {', '.join(MODES)}")
    axes = [-1] if dims is None else list(dims) if isinstance(dims, list | tuple) else [dims]
    if len(axes) != 1:
        raise TileError(f"T.reduce takes one axis here, not {len(axes)}", span, help="reduce one axis, then the result: dims=[1]")
    word, shape = f"reduce_{mode}", others["real_shape"] or size or None
    handlers = b.handlers or HANDLERS
    if word not in handlers:
        raise TileError(f"T.{word} is not there in a kernel that is kept as it is written", span, help="take T.abs first")
    return handlers[word](b, span, buffer, out, axes[0], clear, shape)


HANDLERS["reduce"] = HANDLERS["npuir_reduce"] = _by_mode
