"""A window of a tile that is in a buffer: it is made of windows of what the tile was made of, down to its loads."""

from __future__ import annotations

from typing import Any

from tile_eg.errors import NotSearched, Span
from tile_eg.frontend.ssa import outside
from tile_eg.frontend.ssa.pieces import Window, aligned, can_be_taken, dense, taken
from tile_eg.frontend.ssa.tiles import Tiles, valid_cols, valid_rows
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.values import Term
from tile_eg.ops.records import record

COMPUTED = ("nest", "unary", "binary", "choose", "choose_at")
"""What is worth keeping: a cast or a copy of a part takes no longer than its copy out of the whole."""
KEPT_BYTES = 16 << 10
"""Up to this size a computed tile is kept whole beside what it is made of; rows of a larger one are loaded and computed as they
are needed, which may be all that UB has room for (assumed: a twelfth of UB, a chunk of 64 x 64 in f32)."""


@record
class Part:
    """Where a window starts in its tile, its rows and columns, and how far apart its rows are."""

    row: Expr
    col: Expr
    rows: int
    cols: int
    step: int = 1

    def shape(self, tiles: Tiles, t: Term) -> dict[str, Any]:
        """The window's shape and valid extents, where t is the whole tile (or a vector that is repeated over it)."""
        rows = tiles.extent(_left(valid_rows(t), t.rows, self.row, self.rows, self.step))
        cols = tiles.extent(_left(valid_cols(t), t.cols, self.col, self.cols))
        return {"rows": self.rows, "cols": self.cols, "dtype": t.dtype, "vrows": rows, "vcols": cols}

    def offset(self, offset: Expr, stride: int) -> Expr:
        """Where a load of the window starts, where one of the whole tile starts at `offset`. Rows that lie
        anywhere are counted by `EACH`, which is this window's own row."""
        if ix.EACH not in ix.variables(offset):
            return offset + self.row * stride + self.col
        row = self.row + (ix.var(ix.EACH) * self.step if self.rows > 1 else ix.ZERO)
        return ix.substitute(offset, {ix.EACH: row}) + self.col

    def along(self, axis: int) -> Part:
        """The part of a vector that is repeated over the tile: of one value a row (axis 1) or one a column (axis 0)."""
        return Part(ix.ZERO, self.row, 1, self.rows) if axis == 1 else Part(ix.ZERO, self.col, 1, self.cols)


def _left(valid: Expr, whole: int, start: Expr, size: int, step: int = 1) -> Expr:
    """What is valid of `size` elements from `start` on, `step` apart, of `whole` that there are."""
    if valid.value == whole or (start, size) == (ix.ZERO, whole):
        return valid if size == whole else ix.const(size)
    return ix.maximum(0, ix.minimum(size, (valid - start + (step - 1)) // step))


def part(tiles: Tiles, t: Term, p: Part, name: str, span: Span | None) -> Term:
    """The window of a tile, `name` in the source; NotSearched where the tile is not made element by element."""
    if p == Part(ix.ZERO, ix.ZERO, t.rows, t.cols):
        return t
    if t in tiles.windows:
        return _of_window(tiles, t, p, name, span)
    again = lambda *args: tiles.make(span, t.op, *args, **p.shape(tiles, t))  # noqa: E731
    match t.op, t.args:
        case "load", (version, offset, stride):
            return again(version, p.offset(offset, stride), stride * p.step)
        case "fill", _:
            return again(*t.args)
        case (("unary" | "binary" | "cast" | "choose"), _):
            return again(*(part(tiles, a, p, name, span) if isinstance(a, Term) else a for a in t.args))
        case "choose_at", (op, i, j, bound, x, y):
            return again(op, i * p.step, j, bound - (p.row * i + p.col * j), *(part(tiles, a, p, name, span) for a in (x, y)))
        case "bcast", (1, v) if p.step > 1 and v.op != "fill":
            raise _strided(name, span)
        case "bcast", (axis, v):
            return again(axis, part(tiles, v, p.along(axis), name, span))
        case "nest", (s,):
            return again(_scalar(tiles, s, p, name, span))
    window = Window(p.row, p.col, p.rows, p.cols)
    if p.step == 1 and (dense(t) or can_be_taken(t, window)):
        return taken(tiles, t, window, name, span)
    raise NotSearched(
        f"a part of `{name}` is not supported here: a loop, a product or a reduction has made it", span,
        help="keep its halves in buffers of their own, or take parts of what was loaded or computed from that element by element",
    )  # fmt: skip


def part_of_whole(tiles: Tiles, t: Term, p: Part, name: str, span: Span | None) -> Term:
    """The window of a tile that a loop goes through: what was computed is there as a whole before the loop, and is not computed
    again in each trip, unless it is large. NotSearched as `part`."""
    run = p.step == 1 and dense(t) and aligned(p.row * t.cols + p.col, t) and (p.rows == 1 or p.cols == t.cols)
    if t.op not in COMPUTED or not run or t.dtype is None or t.rows * t.cols * t.dtype.bytes > KEPT_BYTES:
        return part(tiles, t, p, name, span)
    return taken(tiles, t, Window(p.row, p.col, p.rows, p.cols), name, span)


def _of_window(tiles: Tiles, t: Term, p: Part, name: str, span: Span | None) -> Term:
    """A window of the tensor; where others have its columns and other rows, a part of one that has all rows."""
    if (name, p.col) in tiles.shared and p.step == 1 and p.rows < t.rows:
        columns = outside.window(tiles, tiles.windows[t].part((ix.ZERO, p.col), (t.rows, p.cols), 1), span)
        if dense(columns) and aligned(p.row * p.cols, columns):
            return taken(tiles, columns, Window(p.row, ix.ZERO, p.rows, p.cols), name, span)
    return outside.window(tiles, tiles.windows[t].part((p.row, p.col), (p.rows, p.cols), p.step), span)


def _scalar(tiles: Tiles, s: Term, p: Part, name: str, span: Span | None) -> Term:
    """A nest's scalar expression at the elements of the window."""
    inner = {"elem": p, "elem_row": p.along(1), "elem_col": p.along(0)}.get(s.op)
    if s.op == "elem_row" and p.step > 1 and s.args[0].op != "fill":
        raise _strided(name, span)
    if inner is not None:
        return tiles.make(span, s.op, part(tiles, s.args[0], inner, name, span), dtype=s.dtype)
    args = list(s.args)
    if s.op == "s_choose_at":
        args[3] = args[3] - (p.row * args[1] + p.col * args[2])
        args[1] *= p.step
    if s.op == "s_index":
        args = [args[0] * p.step, args[1], args[2] + p.row * args[0] + p.col * args[1]]
    if s.op == "s_reduce":
        raise NotSearched(f"a part of `{name}` is not supported here: a reduction has made it", span)
    return tiles.make(span, s.op, *(_scalar(tiles, a, p, name, span) if isinstance(a, Term) else a for a in args), dtype=s.dtype)


def _strided(name: str, span: Span | None) -> NotSearched:
    return NotSearched(
        f"rows of `{name}` that do not follow one another are not supported here: a vector of one value a row has made it", span,
        help="take such rows of what was loaded, and the vector's part of them from a tensor of its own",
    )  # fmt: skip
