"""Parts of buffers as terms: a window of a tile that was computed, and a tile in which a window is replaced.

What begins at a multiple of 32 bytes is copied. Any other window is gathered, and chosen by its elements' positions.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Any

import numpy as np

from tile_eg.errors import NotSearched, Span
from tile_eg.frontend.ssa.positions import EXACT, Place, Position
from tile_eg.frontend.ssa.tiles import Tiles, Unlike, valid_cols, valid_rows
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ir.values import Term
from tile_eg.ops.records import record
from tile_eg.ops.types import BF16, F32, I32, U32, DType
from tile_eg.ops.whole_tiles import WORDS

MADE_OF_PARTS = ("put", "piece", "whole")
"""Terms all of whose elements are valid."""


@record
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
    return whole and may_be_padded(t)


def may_be_padded(t: Term) -> bool:
    """Whether a tile's elements lie in one run where all of them are valid."""
    return t.dtype in (*WORDS, BF16) and (t.rows == 1 or t.cols * t.dtype.bytes % BLOCK_BYTES == 0)


def _has_gaps(t: Term) -> bool:
    """Whether all of a tile exists, in rows that do not follow one another."""
    return (valid_rows(t).value, valid_cols(t).value) == (t.rows, t.cols) and t.dtype in (*WORDS, BF16) and not dense(t)


def aligned(offset: Expr, t: Term) -> bool:
    """Whether a window that begins there in a tile begins at a multiple of 32 bytes."""
    assert t.dtype is not None
    return multiple_of(offset) * t.dtype.bytes % BLOCK_BYTES == 0


def taken(tiles: Tiles, t: Term, w: Window, name: str, span: Span | None) -> Term:
    """The window of a tile; of one that ends early, from its first row and column on where it ends. NotSearched where its
    elements do not lie in one run."""
    rows, cols = _existing(tiles, t, w)
    shape: dict[str, Any] = {"rows": w.rows, "cols": w.cols, "dtype": t.dtype, "vrows": rows, "vcols": cols}
    t = _in_a_run(tiles, t, w, name, span)
    offset = w.row * t.cols + w.col
    if aligned(offset, t) and w.step == 1 and (w.rows == 1 or t.rows > 1):
        return tiles.make(span, "piece", offset, t, **shape)
    size = gathered_bytes(t, name, span)
    at = tiles.index(Place(t.cols * size, w.step * size, offset * size), (w.rows, w.cols), span)
    return tiles.make(span, "whole", "gather", 0, 0, t, offsets(tiles, at, span), **shape)


def can_be_taken(t: Term, w: Window) -> bool:
    """Whether the elements of a tile can be laid into one run, and those that exist of a window of it are a rectangle."""
    ends_down, ends_along = valid_rows(t).value != t.rows, valid_cols(t).value != t.cols
    return t.dtype in (*WORDS, BF16) and not (ends_down and w.row != ix.ZERO) and not (ends_along and w.col != ix.ZERO)


def _existing(tiles: Tiles, t: Term, w: Window) -> tuple[Expr, Expr]:
    """How many rows and columns of a window exist."""
    found = []
    for valid, full, size in ((valid_rows(t), t.rows, w.rows), (valid_cols(t), t.cols, w.cols)):
        found.append(tiles.extent(ix.minimum(valid, ix.const(size))) if valid.value != full else ix.const(size))
    return found[0], found[1]


def _in_a_run(tiles: Tiles, t: Term, w: Window, name: str, span: Span | None) -> Term:
    """The tile, whole and with wider rows where they have gaps. NotSearched where a window of it cannot be taken."""
    if can_be_taken(t, w):
        return laid(tiles, t, 0.0, t.rows, span)
    check_dense(t, name, span)
    return t


def replaced(tiles: Tiles, old: Term, new: Term, w: Window, name: str, span: Span | None) -> Term:
    """The tile `old` with `new` in a window of it; 0 where `new` lies beyond the end of a tensor."""
    run = laid(tiles, old, 0.0, old.rows, span) if _has_gaps(old) else old
    check_dense(run, name, span)
    if run is not old:
        found = replaced(tiles, run, new, w, name, span)
        return part(tiles, found, (old.rows, old.cols), (ix.const(old.rows), ix.const(old.cols)), span)
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


def laid(tiles: Tiles, t: Term, value: float, rows: int, span: Span | None) -> Term:
    """The tile in `rows` rows of a multiple of 32 bytes, with `value` around what exists of it."""
    assert t.dtype is not None
    cols = t.cols if rows == 1 else blocks(t.cols, t.dtype)
    if (rows, cols) == (t.rows, t.cols):
        return padded(tiles, t, value, span)
    whole = tiles.fill(value, (rows, cols), t.dtype, span)
    check_padded(whole, span)
    return tiles.make(span, "put", ix.ZERO, whole, t, like=whole)


def blocks(count: int, dtype: DType) -> int:
    """So many elements in whole blocks of 32 bytes."""
    each = BLOCK_BYTES // dtype.bytes
    return -(-count // each) * each


def part(tiles: Tiles, t: Term, shape: tuple[int, int], valid: tuple[Expr, Expr], span: Span | None) -> Term:
    """The first rows and columns of a tile, of which so many exist."""
    if (t.rows, t.cols) == shape and (valid[0].value, valid[1].value) == shape:
        return t
    rows, cols = shape
    return tiles.make(span, "piece", ix.ZERO, t, rows=rows, cols=cols, dtype=t.dtype, vrows=valid[0], vcols=valid[1])


def check_padded(whole: Term, span: Span | None) -> None:
    """NotSearched where a tile does not lie in one run, so that nothing is put into it."""
    if not dense(whole):
        what = f"a tile of {whole.rows} x {whole.cols} elements of {whole.dtype} is not loaded with a number around it"
        rows = f"take rows of a multiple of {BLOCK_BYTES} bytes, of 16-bit or 32-bit elements"
        raise NotSearched(what, span, help=f"{rows}; or store what is padded in a kernel of its own, and go on in another one")


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


def gathered_bytes(t: Term, name: str, span: Span | None) -> int:
    """The bytes of an element. NotSearched where the instruction that gathers does not take it."""
    if t.dtype not in WORDS:
        help = f"cast `{name}` to f16 or f32 first, or let the part begin at a multiple of {BLOCK_BYTES} bytes"
        raise NotSearched(f"a part of `{name}` that begins anywhere is not supported for {t.dtype}", span, help=help)
    return t.dtype.bytes


def check_dense(t: Term, name: str, span: Span | None) -> None:
    if not dense(t):
        what = f"{t.rows} x {t.cols} elements of {t.dtype} that do not lie in one run"
        help = "rows of a multiple of 32 bytes, of 16-bit or 32-bit elements, that lie inside their tensor"
        raise NotSearched(f"a part of `{name}` is not supported here: {what}", span, help=help)


def _chosen(tiles: Tiles, old: Term, new: Term, w: Window, name: str, span: Span | None) -> Term:
    """Each element of the tile from where it stands in the window, where it does."""
    if old.rows * old.cols * 4 >= EXACT:
        raise NotSearched(f"`{name}` is too large for a part of it that begins anywhere", span)
    shape = (old.rows, old.cols)
    col = tiles.index(Place(0, 1, ix.ZERO - w.col), shape, span)
    if w.step > 1:
        half = tiles.binary("add", col, number(tiles, 0.5, col), span)
        place = tiles.unary("floor", tiles.binary("mul", half, number(tiles, 1.0 / w.step, col), span), span)
        back = tiles.binary("mul", place, number(tiles, float(w.step), col), span)
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
    size = gathered_bytes(new, name, span)
    check_dense(new, name, span)
    at = tiles.binary("mul", within(tiles, col, w.cols - 1, span), number(tiles, float(size), col), span)
    if w.rows > 1 or shape[0] > 1:
        row = within(tiles, tiles.index(Place(1, 0, ix.ZERO - w.row), shape, span), w.rows - 1, span)
        at = tiles.binary("add", at, tiles.binary("mul", row, number(tiles, float(size * new.cols), row), span), span)
    return tiles.make(span, "whole", "gather", 0, 0, new, offsets(tiles, at, span), like=at, dtype=new.dtype)


def within(tiles: Tiles, x: Term, last: int, span: Span | None) -> Term:
    low = tiles.binary("max", x, number(tiles, 0.0, x), span)
    return tiles.binary("min", low, number(tiles, float(last), x), span)


def _inside(w: Window) -> list[Position]:
    """row - w.row and col - w.col within the window, as comparisons of positions."""
    width = (w.cols - 1) * w.step + 1
    return [
        Position("lt", 0, -1, ix.const(1) - w.col), Position("lt", 0, 1, w.col + width),
        Position("lt", -1, 0, ix.const(1) - w.row), Position("lt", 1, 0, w.row + w.rows),
    ]  # fmt: skip


def number(tiles: Tiles, value: float, like: Term) -> Term:
    return tiles.make(None, "fill", value, like=like, dtype=F32)


def offsets(tiles: Tiles, at: Term, span: Span | None) -> Term:
    return tiles.cast(tiles.cast(at, I32, span), U32, span)
