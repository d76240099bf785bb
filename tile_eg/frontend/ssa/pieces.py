"""Parts of buffers as terms: a window of a tile that was computed, and a tile in which a window is replaced.

What begins at a multiple of 32 bytes is copied. Any other window is gathered, and chosen by its elements' positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np

from tile_eg.errors import Span, TileError
from tile_eg.frontend.ssa.positions import EXACT, Place, Position
from tile_eg.frontend.ssa.tiles import Tiles, Unlike, valid_cols, valid_rows
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Whole
from tile_eg.ir.values import Term
from tile_eg.ops.types import BF16, F32, I32, U32
from tile_eg.ops.whole_tiles import WORDS

BLOCK_BYTES = 32
MADE_OF_PARTS = ("put", "piece", "whole")
"""Terms all of whose elements are valid."""


@dataclass(frozen=True)
class Window:
    """Where a window begins in a tile, its rows and columns, and how far apart its columns are."""

    row: Expr
    col: Expr
    rows: int
    cols: int
    step: int = 1


def multiple_of(e: Expr) -> int:
    """What an index is always a multiple of; 0 for the constant 0."""
    if e.op == "const":
        return abs(e.args[0])
    if e.op == "add":
        return gcd(*map(multiple_of, e.args))
    return prod(map(multiple_of, e.args)) if e.op == "mul" else 1


def dense(t: Term) -> bool:
    """Whether all elements of a tile are valid and lie in one run."""
    whole = (valid_rows(t).value, valid_cols(t).value) == (t.rows, t.cols)
    return whole and t.dtype in (*WORDS, BF16) and (t.rows == 1 or t.cols * t.dtype.bytes % BLOCK_BYTES == 0)


def aligned(offset: Expr, t: Term) -> bool:
    """Whether a window that begins there in a tile begins at a multiple of 32 bytes."""
    assert t.dtype is not None
    return multiple_of(offset) * t.dtype.bytes % BLOCK_BYTES == 0


def taken(tiles: Tiles, t: Term, w: Window, name: str, span: Span | None) -> Term:
    """The window of a tile. TileError where its elements do not lie in one run."""
    valid = {"vrows": ix.const(w.rows), "vcols": ix.const(w.cols)}
    shape: dict[str, Any] = {"rows": w.rows, "cols": w.cols, "dtype": t.dtype, **valid}
    check_dense(t, name, span)
    offset = w.row * t.cols + w.col
    if aligned(offset, t) and w.step == 1 and (w.rows == 1 or t.rows > 1):
        return tiles.make(span, "piece", offset, t, **shape)
    size = _gathered(t, name, span)
    at = tiles.index(Place(t.cols * size, w.step * size, offset * size), (w.rows, w.cols), span)
    return tiles.make(span, "whole", "gather", 0, 0, t, _offsets(tiles, at, span), **shape)


def replaced(tiles: Tiles, old: Term, new: Term, w: Window, name: str, span: Span | None) -> Term:
    """The tile `old` with `new` in a window of it; 0 where `new` lies beyond the end of a tensor."""
    check_dense(old, name, span)
    offset = w.row * old.cols + w.col
    if not aligned(offset, old) or w.step != 1:
        return _chosen(tiles, old, padded(tiles, new, 0.0, span), w, name, span)
    whole = tiles.fill(0.0, (old.rows, old.cols), old.dtype or F32, span)
    parts = _parts(tiles.make(span, "put", offset, old, new, like=old))
    if parts is None:
        return tiles.make(span, "put", offset, old, padded(tiles, new, 0.0, span), like=old)
    for at, x in parts:  # nothing is left of what the tile was before
        whole = tiles.make(span, "put", at, whole, x, like=whole)
    return whole


def _parts(t: Term) -> list[tuple[Expr, Term]] | None:
    """The parts that cover a tile, each where it begins; None where they meet, or leave something of what was there before."""
    left, found, base = np.ones((t.rows, t.cols), bool), [], t
    while base.op == "put" and left.any():
        at, under, x = base.args
        if at.value is None:
            return None
        row, col = divmod(at.value, t.cols)
        window = left[row : row + x.rows, col : col + x.cols]
        if window.shape != (x.rows, x.cols) or not window.all():
            return None
        window[:] = False
        found.append((at, _unpadded(x)))
        base = under
    return None if left.any() or not found else found[::-1]


def padded(tiles: Tiles, t: Term, value: float, span: Span | None) -> Term:
    """A tile with a number in the place of what lies beyond the end of its tensor."""
    whole = tiles.fill(value, (t.rows, t.cols), t.dtype or F32, span)
    if (valid_rows(t).value, valid_cols(t).value) == (t.rows, t.cols):
        return t
    check_padded(whole, span)
    return tiles.make(span, "put", ix.ZERO, whole, t, like=whole)


def copied(tiles: Tiles, t: Term, span: Span | None) -> Term:
    """A tile all of which is valid, as one of parts."""
    whole = tiles.fill(0.0, (t.rows, t.cols), t.dtype or F32, span)
    check_padded(whole, span)
    return tiles.make(span, "put", ix.ZERO, whole, t, like=whole)


def check_padded(whole: Term, span: Span | None) -> None:
    """TileError where a tile does not lie in one run, so that nothing is put into it."""
    if not dense(whole):
        help = f"rows of a multiple of {BLOCK_BYTES} bytes, of 16-bit or 32-bit elements"
        raise TileError(f"{whole.rows} x {whole.cols} elements of {whole.dtype} are not padded", span, help=help)


def _unpadded(t: Term) -> Term:
    """A tile without the zeros in the place of what lies beyond its end."""
    at, under, x = t.args if t.op == "put" else (None, None, None)
    zeros = at == ix.ZERO and under.op == "fill" and under.args[0] == 0.0 and (x.rows, x.cols) == (t.rows, t.cols)
    return x if zeros else t


def of_one_depth(tiles: Tiles, a: tuple[Term, bool], b: tuple[Term, bool], span: Span | None) -> tuple[Term, Term]:
    """The operands of a product, each given with whether its rows are the depth; where the end of a tensor cuts one of them off
    and the other is a tile made of parts or by a loop, which has no end of its own, the first one ends in zeros."""
    (x, down), (y, other) = a, b
    kx, ky = (valid_rows(t) if rows else valid_cols(t) for t, rows in (a, b))
    if kx == ky:
        return x, y
    if ky.value == (y.rows if other else y.cols) and not _may_end(tiles, b, kx):
        return padded(tiles, x, 0.0, span), y
    if kx.value == (x.rows if down else x.cols) and not _may_end(tiles, a, ky):
        return x, padded(tiles, y, 0.0, span)
    return x, y


def _may_end(tiles: Tiles, operand: tuple[Term, bool], depth: Expr) -> bool:
    """Whether an operand of a product may be made of operands that end at a depth."""
    t, rows = operand
    if t.op in MADE_OF_PARTS:
        return False
    return not isinstance(tiles.with_extents(t, depth if rows else None, None if rows else depth), Unlike)


def transposed(tiles: Tiles, t: Term, e: Whole) -> Term:
    """Rows as columns. A product takes the tile itself; for anything else, each element is gathered from its place."""
    shape = {"rows": t.cols, "cols": t.rows, "dtype": t.dtype, "vrows": t.vcols, "vcols": t.vrows}
    made = tiles.builder.make("whole", "transpose", 0, 0, t, **shape)
    if e.span is not None:
        tiles.spans.setdefault(made, e.span)
    tiles.turned[made], tiles.laid[made] = t, lambda: _gathered_columns(tiles, t, e)
    return made


def _gathered_columns(tiles: Tiles, t: Term, e: Whole) -> Term:
    tiles.check_whole(e, [t])
    check_dense(t, "the tile that is transposed", e.span)
    size = _gathered(t, "the tile that is transposed", e.span)
    at = tiles.index(Place(size, t.cols * size, ix.ZERO), (t.cols, t.rows), e.span)
    made = tiles.make(e.span, "whole", "gather", 0, 0, t, _offsets(tiles, at, e.span), like=at, dtype=t.dtype)
    check_dense(made, "the transposed tile", e.span)
    return made


def running(tiles: Tiles, t: Term, e: Whole) -> Term:
    """Sums or products over what comes before, an element's own included: of 2, then of 4, then of 8 and so on, each from two of
    before."""
    op, nothing = {"cumsum": ("add", 0.0), "cumprod": ("mul", 1.0)}[e.op]
    tiles.check_whole(e, [t])
    check_dense(t, f"the tile of `{e.op}`", e.span)
    down = t.rows > 1 and e.numbers[0] == 0
    back, count = bool(e.numbers[1]), t.rows if down else t.cols
    made, step = t, 1
    while step < count:
        if aligned(ix.const(step * (t.cols if down else 1)), t):
            made = _joined(tiles, made, op, step, (down, back), e.span)
        else:
            made = tiles.binary(op, made, _gathered_before(tiles, made, (step, nothing), (down, back), e.span), e.span)
        step *= 2
    return made


def _joined(tiles: Tiles, t: Term, op: str, step: int, way: tuple[bool, bool], span: Span | None) -> Term:
    """The tile in which each element, but the first ones, is joined with the one `step` before: windows that are copied."""
    down, back = way
    rows, cols = (t.rows - step, t.cols) if down else (t.rows, t.cols - step)
    later = (ix.const(step), ix.ZERO) if down else (ix.ZERO, ix.const(step))
    first, last = ((ix.ZERO, ix.ZERO), later)
    own, other = (Window(*at, rows, cols) for at in ((first, last) if back else (last, first)))
    x, y = (taken(tiles, t, w, "the tile", span) for w in (own, other))
    return replaced(tiles, t, tiles.binary(op, x, y, span), own, "the tile", span)


def _gathered_before(tiles: Tiles, t: Term, ahead: tuple[int, float], way: tuple[bool, bool], span: Span | None) -> Term:
    """For each element the one that is so many before it, and a number where there is none."""
    (step, nothing), (down, back) = ahead, way
    away, shape = step if back else -step, (t.rows, t.cols)
    size = t.dtype.bytes  # type: ignore[union-attr]
    first = ix.const(size * away * (t.cols if down else 1))
    at = tiles.index(Place(t.cols * size, size, first), shape, span)
    at = _offsets(tiles, _within(tiles, at, (t.rows * t.cols - 1) * size, span), span)
    before = tiles.make(span, "whole", "gather", 0, 0, t, at, like=t)
    sign, bound = (1, (t.rows if down else t.cols) - step) if back else (-1, 1 - step)
    holds = Position("lt", sign if down else 0, 0 if down else sign, ix.const(bound))
    return tiles.choose_at(holds, (before, tiles.fill(nothing, shape, F32, span)), span)


def first_extreme(tiles: Tiles, t: Term, e: Whole) -> Term:
    """The least place at which an element equals the largest or smallest one along an axis."""
    tiles.check_whole(e, [t])
    op, along, shape = e.op.removeprefix("arg"), e.numbers[0] == 1 or t.rows == 1, (t.rows, t.cols)
    count = t.cols if along else t.rows
    axis = 1 if along else 0
    extreme = tiles.broadcast(tiles.reduce(op, t, axis, e.span), axis, t.cols if along else t.rows, e.span)
    at = tiles.index(Place(int(not along), int(along), ix.ZERO), shape, e.span)
    where = tiles.choose("eq", (t, extreme), (at, _number(tiles, float(count), at)), e.span)
    return tiles.cast(tiles.reduce("min", where, axis, e.span), I32, e.span)


MADE = {
    "transpose": transposed, "cumsum": running, "cumprod": running, "argmax": first_extreme, "argmin": first_extreme,
}  # fmt: skip
"""Operations on whole tiles that have no instruction."""


def _gathered(t: Term, name: str, span: Span | None) -> int:
    """The bytes of an element. TileError where the instruction that gathers does not take it."""
    if t.dtype not in WORDS:
        help = f"cast `{name}` to f16 or f32 first, or let the part begin at a multiple of {BLOCK_BYTES} bytes"
        raise TileError(f"a part of `{name}` that begins anywhere is not supported for {t.dtype}", span, help=help)
    return t.dtype.bytes


def check_dense(t: Term, name: str, span: Span | None) -> None:
    if not dense(t):
        what = f"{t.rows} x {t.cols} elements of {t.dtype} that do not lie in one run"
        help = "rows of a multiple of 32 bytes, of 16-bit or 32-bit elements, that lie inside their tensor"
        raise TileError(f"a part of `{name}` is not supported here: {what}", span, help=help)


def _chosen(tiles: Tiles, old: Term, new: Term, w: Window, name: str, span: Span | None) -> Term:
    """Each element of the tile from where it stands in the window, where it does."""
    if old.rows * old.cols * 4 >= EXACT:
        raise TileError(f"`{name}` is too large for a part of it that begins anywhere", span)
    shape = (old.rows, old.cols)
    col = tiles.index(Place(0, 1, ix.ZERO - w.col), shape, span)
    if w.step > 1:
        half = tiles.binary("add", col, _number(tiles, 0.5, col), span)
        place = tiles.unary("floor", tiles.binary("mul", half, _number(tiles, 1.0 / w.step, col), span), span)
        back = tiles.binary("mul", place, _number(tiles, float(w.step), col), span)
    else:
        place, back = col, col
    value = new if new.op == "fill" else _looked_up(tiles, new, place, w, shape, name, span)
    if new.op == "fill":
        value = tiles.make(span, "fill", new.args[0], like=old)
    for holds in _inside(w):
        value = tiles.choose_at(holds, (value, old), span)
    return value if w.step == 1 else tiles.choose("eq", (back, col), (value, old), span)


def _looked_up(tiles: Tiles, new: Term, col: Term, w: Window, shape: tuple[int, int], name: str, span: Span | None) -> Term:
    """The element of the window's value for each element of the tile; some element where it does not stand in the window."""
    size = _gathered(new, name, span)
    check_dense(new, name, span)
    at = tiles.binary("mul", _within(tiles, col, w.cols - 1, span), _number(tiles, float(size), col), span)
    if w.rows > 1 or shape[0] > 1:
        row = _within(tiles, tiles.index(Place(1, 0, ix.ZERO - w.row), shape, span), w.rows - 1, span)
        at = tiles.binary("add", at, tiles.binary("mul", row, _number(tiles, float(size * new.cols), row), span), span)
    return tiles.make(span, "whole", "gather", 0, 0, new, _offsets(tiles, at, span), like=at, dtype=new.dtype)


def _within(tiles: Tiles, x: Term, last: int, span: Span | None) -> Term:
    low = tiles.binary("max", x, _number(tiles, 0.0, x), span)
    return tiles.binary("min", low, _number(tiles, float(last), x), span)


def _inside(w: Window) -> list[Position]:
    """row - w.row and col - w.col within the window, as comparisons of positions."""
    width = (w.cols - 1) * w.step + 1
    return [
        Position("lt", 0, -1, ix.const(1) - w.col), Position("lt", 0, 1, w.col + width),
        Position("lt", -1, 0, ix.const(1) - w.row), Position("lt", 1, 0, w.row + w.rows),
    ]  # fmt: skip


def _number(tiles: Tiles, value: float, like: Term) -> Term:
    return tiles.make(None, "fill", value, like=like, dtype=F32)


def _offsets(tiles: Tiles, at: Term, span: Span | None) -> Term:
    return tiles.cast(tiles.cast(at, I32, span), U32, span)
