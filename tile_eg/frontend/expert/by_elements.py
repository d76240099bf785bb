"""Words of a kernel that is kept without an instruction of their own: done as an element loop over their buffers does them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert import composed_words, vectors, whole_words
from tile_eg.frontend.expert.accesses import Axes
from tile_eg.frontend.expert.parallel import statement
from tile_eg.frontend.expert.reader import ExpertReader, On
from tile_eg.frontend.expert.scalars import is_scalar
from tile_eg.frontend.expert.vectors import ub
from tile_eg.frontend.python.tile_words import apply
from tile_eg.frontend.python.values import Buffer, Window, as_region, as_tile, region, value_buffer
from tile_eg.frontend.python.words import rounded_as
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.kernel import Assign, Binary, Cast, Number, Region, TileExpr, Unary
from tile_eg.language.elementwise_words import BINARY as BINARY_WORDS
from tile_eg.language.elementwise_words import UNARY as UNARY_WORDS
from tile_eg.ops import elementwise as ops
from tile_eg.ops.casts import is_direct
from tile_eg.ops.elementwise import BITS, NUMBERS
from tile_eg.ops.types import F16, F32, DType

Word = Callable[..., None]
Made = Callable[..., TileExpr]
ADDED = {(F16, F16), (F32, F32), (F32, F16)}
"""What a product is added to, and its factors: such instructions there are."""


def by_elements(made: Made, r: ExpertReader, span: Span, dst: Any, *operands: Any) -> None:
    """dst = made(operands), element by element; an operand of one element stands for each of them."""
    for v in (dst, *(v for v in operands if not is_scalar(v))):
        ub(r, v, span)
    to = as_region(dst, span)
    sizes = [n for n in to.shape if n != 1] or [1]
    names = [r.unique(n) for n in "hij"[-len(sizes) :]] if len(sizes) < 4 else []
    if not names:
        raise TileError(f"a window of {len(sizes)} dimensions is not supported here", span, help="take it plane by plane")
    r.grid.update({n: (0, size - 1) for n, size in zip(names, sizes, strict=True)})
    target = _element(to, sizes, names, span)
    value = made(*(_operand(v, sizes, names, span) for v in operands))
    written(r, Assign(target, value, span), names, sizes)


def written(r: ExpertReader, s: Assign, names: list[str], sizes: list[int]) -> None:
    """One assignment for all values of the variables."""
    *outer, col = zip(names, sizes, strict=True)
    row = outer.pop() if outer else (None, 1)
    with r.block(repeats=False) as made:
        statement(r, s, Axes(row[0], col[0], row[1], col[1]))
    found: list[Any] = list(made)
    for name, size in reversed(outer):
        found = [On(None, pr.Loop(name, size, tuple(found), s.span))]
    r.statements += found


def _operand(v: Any, sizes: list[int], names: list[str], span: Span) -> TileExpr:
    if isinstance(v, Buffer | Window | Region):
        r = region(v) if isinstance(v, Window) else as_region(v, span)
        return r if r.shape == () else _element(r, sizes, names, span)
    return as_tile(v, span)


def _element(r: Region, sizes: list[int], names: list[str], span: Span) -> Region:
    """The element of a window for the loop's variables; dimensions of one element have none, and stand for all of the others."""
    if len(r.shape) == len(sizes) and all(n in (1, size) for n, size in zip(r.shape, sizes, strict=True)):
        sizes, names = [n for n in r.shape if n != 1], [v for n, v in zip(r.shape, names, strict=True) if n != 1]
    if [n for n in r.shape if n != 1] not in (sizes, []):
        shapes = (" x ".join(map(str, shape)) for shape in (sizes, r.shape))
        help = "T.tile.broadcast spreads a row or a column"
        raise TileError("the operands differ in size: {}, {}".format(*shapes), span, help=help)
    left = iter(names)
    steps = (ix.var(next(left)) if e not in (None, 1) else ix.ZERO for e in r.extents)
    starts = tuple(start + step for start, step in zip(r.starts, steps, strict=True))
    return Region(r.name, starts, (None,) * len(starts), r.span or span)


def _types(values: tuple[Any, ...]) -> set[DType]:
    return {value_buffer(v).dtype for v in values if isinstance(v, Buffer | Window) and not is_scalar(v)}


def _otherwise(native: Word | None, takes: tuple[DType, ...], made: Made, scalars: bool = True) -> Word:
    """The word by its instruction where that takes all operands (`scalars`: numbers, too), else element by element."""
    bits = takes == BITS

    def word(r: ExpertReader, span: Span, *values: Any) -> None:
        found = _types(values)
        by_instruction = native is not None and (scalars or not any(map(is_scalar, values))) and not _spread(values, span)
        if by_instruction and len(found) == 1 and (found <= set(takes) or (bits and _byte_runs(r, span, values))):
            native(r, span, *values)  # type: ignore[misc]
        else:
            by_elements(made, r, span, *values)

    return word


def _spread(values: tuple[Any, ...], span: Span) -> bool:
    """Whether an operand is a row or a column beside a tile."""
    to, *shapes = (as_region(v, span).shape for v in values if isinstance(v, Buffer | Window) and not is_scalar(v))
    beside = [s for s in shapes if len(to) == len(s) > 1 and s != to]
    return any(1 in s and all(n in (1, m) for n, m in zip(s, to, strict=True)) for s in beside)


def _byte_runs(r: ExpertReader, span: Span, values: tuple[Any, ...]) -> bool:
    """Whether all are as many bytes in one run each, an even number: instructions on bits take two at a time."""
    if any(map(is_scalar, values)):
        return False
    places = [ub(r, v, span) for v in values]
    alike = len({p.count for p in places}) == 1 and places[0].count % 2 == 0
    return alike and all(p.whole and p.dtype.bytes == 1 for p in places)


def _unary(word: str, op: str) -> Word:
    entry = ops.UNARY.get(op)
    made = lambda x: apply(op, x, x.span)  # noqa: E731
    if f"tile.{word}" in composed_words.WORDS:
        return _otherwise(composed_words.WORDS[f"tile.{word}"], NUMBERS, made)
    native = partial(vectors.unary, op) if entry is not None and entry.native else None
    return _otherwise(native, entry.types if entry is not None else (), made)


def _binary(word: str, op: str) -> Word:
    native = vectors.WORDS.get(f"tile.{word}") or whole_words.WORDS.get(f"tile.{word}")
    return _otherwise(native, ops.BINARY[op].types, lambda x, y: Binary(op, x, y), op not in ("and", "or"))


def _cast(r: ExpertReader, span: Span, dst: Any, src: Any, mode: Any = "CAST_NONE", count: Any = None) -> None:
    """By one instruction where there is one, else in steps."""
    to, x = ub(r, dst, span), ub(r, src, span)
    if x.dtype == to.dtype == F32 and mode != "CAST_NONE":
        to, x = (vectors.first(p, count, span) for p in (to, x))
        made = rounded_as(mode, Number(0.0), dst, span, F32)
        return vectors.elementwise(r, span, f"v{made.op}", to, x)  # type: ignore[union-attr]
    if is_direct(x.dtype, to.dtype):
        return vectors.WORDS["tile.cast"](r, span, dst, src, mode, count)
    if vectors.first(to, count, span) is not to:
        help = f"slice both buffers: dst[0:{count}], src[0:{count}]"
        raise TileError(f"no instruction casts {x.dtype} to {to.dtype}, and steps take whole buffers", span, help=help)
    return by_elements(lambda e: Cast(to.dtype, rounded_as(mode, e, dst, span, x.dtype), span), r, span, dst, src)


def _round(r: ExpertReader, span: Span, out: Any, buffer: Any, count: Any = None) -> None:
    if count is not None or _types((out, buffer)) == {F32}:
        return vectors.WORDS["tile.round"](r, span, out, buffer, count)
    return by_elements(lambda x: Unary("round", x, span), r, span, out, buffer)


def _added_to(native: Word) -> Word:
    """A word that adds a product to what is there: by its instruction where that takes the types, else element by element."""

    def word(r: ExpertReader, span: Span, dst: Any, x: Any, y: Any) -> None:
        to, *found = (value_buffer(v).dtype for v in (dst, x, y) if isinstance(v, Buffer | Window) and not is_scalar(v))
        if (to, *found) in ADDED or (to, *{*found}) in ADDED:
            return native(r, span, dst, x, y)
        return by_elements(lambda d, a, b: Binary("add", d, Binary("mul", a, b, span), span), r, span, dst, dst, x, y)

    return word


def _broadcast(r: ExpertReader, span: Span, dst: Any, src: Any, axis: Any = None, *others: Any) -> None:
    """By instructions where they spread such elements, else element by element."""
    if is_scalar(src) or (to := ub(r, dst, span)).count == (x := ub(r, src, span)).count:
        return vectors.WORDS["tile.broadcast"](r, span, dst, src, axis, *others)
    if x.dtype == to.dtype and to.dtype in ops.ALL and not vectors.is_unaligned(r, to):
        return vectors.WORDS["tile.broadcast"](r, span, dst, src, axis, *others)
    down = vectors.spread_down(to, x, axis, span)
    names = [r.unique(n) for n in "ij"]
    r.grid.update({n: (0, size - 1) for n, size in zip(names, (to.rows, to.cols), strict=True)})
    i, j = map(ix.var, names)
    target, value = at(as_region(dst, span), i, j), at(as_region(src, span), *((ix.ZERO, j) if down else (i, ix.ZERO)))
    if not down and len(as_region(src, span).shape) == 1:
        value = at(as_region(src, span), ix.ZERO, i)
    return written(r, Assign(target, value, span), names, [to.rows, to.cols])


def at(x: Region, row: ix.Expr, col: ix.Expr) -> Region:
    """The element of a window of two dimensions, or in this column of one of one dimension."""
    axes = [n for n, e in enumerate(x.extents) if e is not None][-2:]
    add = dict(zip(axes, (row, col)[-len(axes) :], strict=True))
    return Region(x.name, tuple(s + add.get(n, ix.ZERO) for n, s in enumerate(x.starts)), (None,) * len(x.starts), x.span)


WORDS: dict[str, Word] = {
    **{f"tile.{word}": _unary(word, op) for word, op in UNARY_WORDS.items()},
    **{f"tile.{word}": _binary(word, op) for word, op in BINARY_WORDS.items()},
    **{f"tile.{word}": _added_to(vectors.WORDS[f"tile.{word}"]) for word in ("axpy", "mul_add_dst")},
    "tile.broadcast": _broadcast,
    "tile.round": _round,
    "tile.cast": _cast,
}
