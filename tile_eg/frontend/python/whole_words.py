"""Words that put the elements of whole tiles in another order: gathers, sorts, merges of sorted lists, the first k of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from math import prod
from typing import Any

from tile_eg.errors import NotSearched, Span, TileError
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.index_words import HANDLERS
from tile_eg.frontend.python.values import Buffer, Window, as_dtype, as_region, as_tile, describe, value_buffer, with_rank
from tile_eg.frontend.python.words import handles, known, resized, sizes
from tile_eg.frontend.windows import known_shape
from tile_eg.ir.kernel import Binary, Cast, Number, Region, TileExpr, Whole
from tile_eg.ops.types import EXACT, F16, F32, I32, DType
from tile_eg.ops.whole_tiles import WHOLE_TILES, padded

__all__ = ["HANDLERS"]

PATTERNS = {
    "P0101": (0, 2), "P1010": (1, 2), "P0001": (0, 4), "P0010": (1, 4), "P0100": (2, 4), "P1000": (3, 4), "P1111": (0, 1),
}  # fmt: skip
"""The first element that a pattern names, and how many further the next one is."""


def whole(op: str, xs: Sequence[TileExpr], numbers: tuple[int, int], span: Span) -> Whole:
    """An operation on whole tiles; TileError where its entry says what is wrong."""
    shapes = tuple(known_shape(x) or () for x in xs)
    found = WHOLE_TILES[op].shape(shapes, numbers)
    if isinstance(found, str):
        raise TileError(found, span)
    return Whole(op, tuple(xs), numbers, span)


def _assign(b: Builder, dst: Any, value: TileExpr, span: Span) -> None:
    """dst = value, of as many elements; TileError where dst has others."""
    to, shape = as_region(dst, span), known_shape(value) or ()
    if prod(to.shape) > prod(shape) and len(shape) == 1 and to.shape and prod(to.shape[:-1]) == 1:
        to = resized(to, (*to.shape[:-1], *shape), span)  # what stands behind the result stays
    if prod(to.shape) != prod(shape):
        room = f"a buffer for it is T.alloc_shared({(*shape,)}, ...)" if len(shape) == 1 else ""
        raise TileError(f"the result has {prod(shape)} elements, and {to.name} {prod(to.shape)}", span, help=room)
    b.assign(with_rank(to, len(shape)), value, span)


@handles("tile.gather")
def _gather(b: Builder, span: Span, dst: Any, src: Any, offsets: Any, base: Any) -> None:
    x, at = as_tile(src, span), as_tile(offsets, span)
    _assign(b, dst, whole("gather", (x, at), (known(base, "the base of a gather", span), 0), span), span)


@handles("reshape", "view")
def _reshape(b: Builder, span: Span, src: Any, shape: Any = None, dtype: Any = None) -> TileExpr:
    """The same elements in order, as a value: what it was made of is not written while it is used."""
    if dtype is not None and as_dtype(dtype, span) != value_buffer(src).dtype:
        what = "the search has no form for the same bits as another dtype"
        raise NotSearched(what, span, help="T.reinterpretcast(dst, src, dtype)")
    if shape is None:
        return as_tile(src, span)
    wanted = sizes(shape, "the size of a tile", span)
    if len(wanted) not in (1, 2):
        raise NotSearched(f"the search has no form for a tile of {len(wanted)} dimensions", span, help="reshape plane by plane")
    return whole("reshape", (as_tile(src, span),), (wanted[0], wanted[1] if len(wanted) == 2 else 0), span)


@handles("transpose")
def _transpose_into(b: Builder, span: Span, src: Any, dst: Any) -> None:
    _transpose(b, span, dst, src)


@handles("tile.gather_mask")
def _gather_mask(b: Builder, span: Span, dst: Any, src: Any, pattern: Any) -> None:
    """By a pattern, or by a buffer or a list of places: dst[i] = src[pattern[i]]."""
    if isinstance(pattern, list | tuple):
        for to, of in picked_one_by_one(dst, src, pattern, span):
            b.assign(to, of, span)
        return
    if isinstance(pattern, Buffer | Window):
        size = Number(float(value_buffer(src).dtype.bytes), span)
        at = Binary("mul", as_tile(pattern, span), size, span)
        value = whole("gather", (as_tile(src, span), at), (0, 0), span)
    else:
        value = whole("every", (as_tile(src, span),), pattern_of(pattern, span), span)
        to = as_region(dst, span)
        if len(to.shape) == 2 and prod(known_shape(value) or ()) == prod(to.shape):  # one element behind the other
            value = whole("reshape", (value,), to.shape, span)
    _assign(b, dst, value, span)


def picked_one_by_one(dst: Any, src: Any, places: Sequence[Any], span: Span) -> list[tuple[Region, Region]]:
    """The elements of a buffer at these places, each with where it goes. TileError where there is none, or no room."""
    to, of = as_region(dst, span), as_region(src, span)
    at = [known(n, "a place", span) for n in places]
    if beyond := [n for n in at if not 0 <= n < prod(of.shape)]:
        raise TileError(f"there is no element {beyond[0]} among {prod(of.shape)}", span)
    if len(at) > prod(to.shape):
        raise TileError(f"{len(at)} elements have no place in {prod(to.shape)}", span)
    return [(_element(to, n), _element(of, k)) for n, k in enumerate(at)]


def _element(r: Region, n: int) -> Region:
    """The n-th element of a window."""
    starts = list(r.starts)
    for k in reversed(range(len(starts))):
        size = r.extents[k] or 1
        starts[k], n = starts[k] + n % size, n // size
    return Region(r.name, tuple(starts), (None,) * len(starts), r.span)


def pattern_of(pattern: Any, span: Span) -> tuple[int, int]:
    """The first element that a pattern names and how far the next one is. TileError where there is no such pattern."""
    if not isinstance(pattern, str) or pattern not in PATTERNS:
        what = repr(pattern) if isinstance(pattern, str) else describe(pattern)
        help = f"there are {', '.join(PATTERNS)}; a list of places, or a uint32 buffer of them, picks any elements"
        raise TileError(f"there is no pattern {what} here", span, help=help)
    return PATTERNS[pattern]


def _sorted(b: Builder, span: Span, dst: Any, src: Any, count: int, keep: int) -> None:
    """Of f16 in f32, the indices among the values too, as TileLang does."""
    x = as_tile(src, span)
    half = _dtype(b, x) == F16
    value: TileExpr = whole("sort", (Cast(F32, x, span) if half else x,), (count, keep), span)
    _assign(b, dst, Cast(F16, value, span) if half else value, span)


def _dtype(b: Builder, x: TileExpr) -> DType | None:
    found = [v.dtype for v in b.local.values() if isinstance(x, Region) and getattr(v, "name", None) == x.name]
    return found[0] if found else None


@handles("tile.sort")
def _sort(b: Builder, span: Span, dst: Any, src: Any, count: Any) -> None:
    n = known(count, "how many elements are sorted", span)
    _sorted(b, span, dst, src, n, padded(n))


@handles("tile.topk")
def _topk(b: Builder, span: Span, dst: Any, src: Any, K: Any, count: Any) -> None:  # noqa: N803
    _sorted(b, span, dst, src, known(count, "how many elements are sorted", span), known(K, "K", span))


@handles("tile.merge_sort")
def _merge(b: Builder, span: Span, dst: Any, *lists: Any) -> None:
    xs = [as_tile(x, span) for x in lists if x is not None]
    _assign(b, dst, reduce(lambda x, y: merged(x, y, span), xs), span)


@handles("tile.transpose")
def _transpose(b: Builder, span: Span, dst: Any, src: Any) -> None:
    _assign(b, dst, whole("transpose", (as_tile(src, span),), (0, 0), span), span)


def _running(op: str, b: Builder, span: Span, src: Any, dst: Any, dim: Any, reverse: Any) -> None:
    x = as_tile(src, span)
    rank, axis = len(known_shape(x) or ()), known(dim, "dim", span)
    if not -rank <= axis < rank or not isinstance(reverse, bool):
        raise TileError(f"dim {axis} does not exist in a tile of {rank} dimensions", span)
    to = src if dst is None else dst
    of, into = (value_buffer(v).dtype if isinstance(v, (Buffer, Window)) else F32 for v in (src, to))
    if of.whole and (op == "cumprod" or (known_shape(x) or (1,))[axis] << of.bits > EXACT):
        raise NotSearched(f"running ones of {of} may be larger than what vector instructions compute exactly", span)
    value = whole(op, (x if of is F32 else Cast(F32, x, span),), (axis % rank, int(reverse)), span)
    _assign(b, to, Cast(into, value, span) if into.whole <= of.whole and into is not F32 else value, span)


HANDLERS.update({word: partial(_running, word.removeprefix("v")) for word in ("cumsum", "vcumsum", "cumprod")})


def _place(op: str, b: Builder, span: Span, buffer: Any, out: Any, dim: Any) -> TileExpr | None:
    """The place of the largest or smallest element of each row or column."""
    x = as_tile(buffer, span)
    rank, axis = len(known_shape(x) or ()), known(dim, "dim", span)
    if not -rank <= axis < rank:
        raise TileError(f"dim {axis} does not exist in a tile of {rank} dimensions", span, help="-1 is the last one")
    dtype = _dtype(b, x)
    if dtype is not None and dtype.whole:
        if 1 << dtype.bits > EXACT:
            raise NotSearched(f"elements of {dtype} are compared exactly by the scalar unit alone", span)
        x = Cast(F32, x, span)
    value = whole(op, (x,), (axis % rank, 0), span)
    if out is None:
        return value
    to = as_region(out, span)
    _assign(b, out, value if value_buffer(out).dtype == I32 else Cast(value_buffer(out).dtype, value, to.span), span)
    return None


for _op in ("argmax", "argmin"):
    HANDLERS[_op] = partial(_place, _op)


def merged(x: TileExpr, y: TileExpr, span: Span) -> Whole:
    """Two sorted lists of pairs as one."""
    numbers = WHOLE_TILES["merge"].default(tuple(known_shape(v) or () for v in (x, y)))
    return whole("merge", (x, y), numbers, span)
