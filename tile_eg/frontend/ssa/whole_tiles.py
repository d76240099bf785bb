"""Operations on whole tiles as terms: transposes, places of extremes, and what an instruction does.

What an instruction works on lies in one run and has no end. A tile that a tensor's end cuts off, or whose rows have gaps, is put
into one that does, with what changes nothing for the operation around it; of the result as much exists as follows from the tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_eg.frontend.ssa import pieces
from tile_eg.frontend.ssa.pieces import (
    blocks,
    gathered_bytes,
    laid,
    number,
    offsets,
    part,
    within,
)
from tile_eg.frontend.ssa.positions import Place
from tile_eg.frontend.ssa.running import running
from tile_eg.frontend.ssa.tiles import Tiles, valid_cols, valid_rows
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Whole
from tile_eg.ir.values import Term
from tile_eg.ops.types import BF16, F16, F32, I8, I32, U8, DType
from tile_eg.ops.whole_tiles import IN_BLOCKS, NOTHING, TURNED, WHOLE_TILES

_WIDER = {BF16: F32, I8: F16, U8: F16}
"""In which an element is moved whose bits no instruction gathers."""
_IN_HALVES = (I8, U8)
"""Bytes, which are turned as halves: the instruction for bytes takes half of each block."""


def made(tiles: Tiles, e: Whole, xs: list[Term], shape: tuple[int, int]) -> Term:
    """The result of an operation on whole tiles, of this shape."""
    if e.op in _MADE:
        return _MADE[e.op](tiles, xs[0], e)
    if e.op == "gather":
        return _gather(tiles, e, xs, shape)
    if e.op == "every" and 1 < shape[0] == xs[0].rows and not _in_blocks(xs[0], shape[1]):
        return _every_of_rows(tiles, xs[0], e, shape)
    if _ends(xs[0]) and (valid := _in_order(e, xs[0], shape)) is not None:
        whole = tiles.whole(e, [pieces.padded(tiles, xs[0], 0.0, e.span)], shape)
        return tiles.narrowed(whole, tiles.extent(valid[0]), tiles.extent(valid[1]), e.span)
    return tiles.whole(e, xs, shape)


def of_two_axes(e: Whole, dimensions: int) -> Whole:
    """The operation with its axis as that of a tile: a vector is one row, so what goes along it goes along axis 1."""
    return replace(e, numbers=(1, e.numbers[1])) if dimensions == 1 and "axis" in WHOLE_TILES[e.op].numbers else e


def _gather(tiles: Tiles, e: Whole, xs: list[Term], shape: tuple[int, int]) -> Term:
    """What offsets that exist point at; the others take the first element. Where it is known how elements go along an axis, the
    result ends with the tile."""
    (x, at), base = xs, e.numbers[0]
    along = ((1, 0, 1), *e.along)[-2:] if e.along else ((0, 0, 0),) * 2
    ends = [valid.value != size for valid, size in ((valid_rows(x), x.rows), (valid_cols(x), x.cols))]
    if any(end and not step for end, (step, _, _) in zip(ends, along, strict=True)):
        tiles.check_whole(e, xs)
    e = replace(e, numbers=(max(base, 0), 0))
    run = laid(tiles, x, 0.0, x.rows, e.span) if base == IN_BLOCKS else pieces.padded(tiles, x, 0.0, e.span)
    whole = _gathered(tiles, e, run, at, shape)
    if _ends(at):
        return tiles.narrowed(whole, valid_rows(at), valid_cols(at), e.span)
    if not any(ends):
        return whole
    valid = zip((valid_rows(x), valid_cols(x)), ends, along, shape, strict=True)
    rows, cols = (_taken(tiles, n, *how, size) if end else ix.const(size) for n, end, how, size in valid)
    return tiles.narrowed(whole, rows, cols, e.span)


def _taken(tiles: Tiles, there: Expr, step: int, first: int, per: int, size: int) -> Expr:
    """How many elements take one that is there."""
    count = (there * per + (step - 1 - first)) // step
    return tiles.extent(ix.minimum(ix.maximum(count, 0), size))


def _gathered(tiles: Tiles, e: Whole, run: Term, at: Term, shape: tuple[int, int]) -> Term:
    """The elements at these offsets; rows that would have gaps are gathered with what fills these, and taken out of them."""
    cols = blocks(shape[1], run.dtype)  # type: ignore[arg-type]
    if shape[0] == 1 or cols == shape[1] or (at.rows, at.cols) != shape:
        return tiles.whole(e, [run, pieces.padded(tiles, at, 0.0, e.span)], shape)
    first = tiles.fill(0.0, (shape[0], cols), at.dtype, e.span)  # type: ignore[arg-type]
    wide = tiles.make(e.span, "put", ix.ZERO, first, at, like=first)
    found = tiles.make(e.span, "whole", "gather", *e.numbers, run, wide, like=wide, dtype=run.dtype)
    return part(tiles, found, shape, (ix.const(shape[0]), ix.const(shape[1])), e.span)


def _in_blocks(t: Term, cols: int) -> bool:
    """Whether the rows of a tile, and rows of so many of its elements, have no gaps between them."""
    return all(n == blocks(n, t.dtype) for n in (t.cols, cols))  # type: ignore[arg-type]


def _every_of_rows(tiles: Tiles, t: Term, e: Whole, shape: tuple[int, int]) -> Term:
    """Elements of rows that have gaps, or are put into such rows: each is gathered from its place."""
    size, (first, step), (rows, cols) = gathered_bytes(t, "the tile", e.span), e.numbers, shape
    whole = laid(tiles, t, 0.0, t.rows, e.span)
    place = Place(whole.cols * size, step * size, ix.const(first * size))
    at = tiles.index(place, (rows, blocks(cols, t.dtype)), e.span)  # type: ignore[arg-type]
    at = offsets(tiles, within(tiles, at, (whole.rows * whole.cols - 1) * size, e.span), e.span)
    found = tiles.make(e.span, "whole", "gather", 0, 0, whole, at, like=at, dtype=t.dtype)
    return part(tiles, found, shape, (valid_rows(t), _counted(valid_cols(t), first, step)), e.span)


def _ends(t: Term) -> bool:
    """Whether not all of a tile exists."""
    return (valid_rows(t).value, valid_cols(t).value) != (t.rows, t.cols)


def _in_order(e: Whole, t: Term, shape: tuple[int, int]) -> tuple[Expr, Expr] | None:
    """The rows and columns that exist of a result in the order of the tile's elements; None where these are no rectangle."""
    if e.op not in ("every", "reshape"):
        return None
    first, step = e.numbers if e.op == "every" else (0, 1)
    rows, cols = shape
    if rows == t.rows and cols * step == t.cols:
        return valid_rows(t), _counted(valid_cols(t), first, step)
    if t.rows > 1 and valid_cols(t).value != t.cols:
        return None
    count = valid_cols(t) if t.rows == 1 else valid_rows(t) * t.cols
    if rows == 1:
        return ix.ONE, _counted(count, first, step)
    if t.rows > 1 and t.cols % (cols * step) == 0:
        return valid_rows(t) * (t.cols // (cols * step)), ix.const(cols)
    return None


def _counted(count: Expr, first: int, step: int) -> Expr:
    return (count + (step - 1 - first)) // step if step > 1 else count


def _widened(through: DType, f: Callable[[Tiles, Term, Whole], Term], tiles: Tiles, t: Term, e: Whole) -> Term:
    """An operation of a wider type, and its result in the tile's own."""
    return tiles.cast(f(tiles, tiles.cast(t, through, e.span), e), t.dtype, e.span)  # type: ignore[arg-type]


# Transposes


def transposed(tiles: Tiles, t: Term, e: Whole) -> Term:
    """Rows as columns. A product takes the tile itself; anything else a tile that is turned in UB."""
    shape = {"rows": t.cols, "cols": t.rows, "dtype": t.dtype, "vrows": t.vcols, "vcols": t.vrows}
    made = tiles.builder.make("whole", "transpose", 0, 0, t, **shape)
    if e.span is not None:
        tiles.spans.setdefault(made, e.span)
    tiles.turned[made], tiles.laid[made] = t, lambda: _in_columns(tiles, t, e)
    return made


def _in_columns(tiles: Tiles, t: Term, e: Whole) -> Term:
    if t.rows > 1 and t.cols > 1:
        return _widened(F16, _turned, tiles, t, e) if t.dtype in _IN_HALVES else _turned(tiles, t, e)
    wide = _WIDER.get(t.dtype)  # type: ignore[arg-type]
    return _widened(wide, _gathered_columns, tiles, t, e) if wide else _gathered_columns(tiles, t, e)


def _turned(tiles: Tiles, t: Term, e: Whole) -> Term:
    """By the instruction that makes columns of 16 rows of 32 bytes, of a tile of whole ones."""
    whole = laid(tiles, t, 0.0, -(-t.rows // TURNED) * TURNED, e.span)
    shape = {"rows": whole.cols, "cols": whole.rows, "vrows": ix.const(whole.cols), "vcols": ix.const(whole.rows)}
    found = tiles.make(e.span, "whole", "transpose", whole.rows, whole.cols, whole, like=whole, **shape)
    return part(tiles, found, (t.cols, t.rows), (valid_cols(t), valid_rows(t)), e.span)


def _gathered_columns(tiles: Tiles, t: Term, e: Whole) -> Term:
    size = gathered_bytes(t, "the tile that is transposed", e.span)
    assert t.dtype is not None
    whole = laid(tiles, t, 0.0, t.rows if t.cols == 1 else blocks(t.rows, t.dtype), e.span)
    at = tiles.index(Place(size, whole.cols * size, ix.ZERO), (t.cols, whole.rows), e.span)
    found = tiles.make(e.span, "whole", "gather", 0, 0, whole, offsets(tiles, at, e.span), like=at, dtype=t.dtype)
    return part(tiles, found, (t.cols, t.rows), (valid_cols(t), valid_rows(t)), e.span)


# Places of extremes


def first_extreme(tiles: Tiles, t: Term, e: Whole) -> Term:
    """The least place at which an element equals the largest or smallest one along an axis."""
    x = tiles.cast(t, F32, e.span) if t.dtype == BF16 else t
    op, along = e.op.removeprefix("arg"), e.numbers[0] == 1
    x = laid(tiles, x, NOTHING[e.op], x.rows, e.span)
    axis, count = (1, x.cols) if along else (0, x.rows)
    extreme = tiles.broadcast(tiles.reduce(op, x, axis, e.span), axis, x.cols if along else x.rows, e.span)
    at = tiles.index(Place(int(not along), int(along), ix.ZERO), (x.rows, x.cols), e.span)
    where = tiles.choose("eq", (x, extreme), (at, number(tiles, float(count), at)), e.span)
    found = tiles.cast(tiles.reduce("min", where, axis, e.span), I32, e.span)
    exist = valid_rows(t) if along else valid_cols(t)
    return part(tiles, found, (1, t.rows if along else t.cols), (ix.ONE, exist), e.span)


_MADE: dict[str, Callable[[Tiles, Term, Whole], Term]] = {
    "transpose": transposed, "cumsum": running, "cumprod": running, "argmax": first_extreme, "argmin": first_extreme,
}  # fmt: skip
"""Operations without an instruction of their own."""
