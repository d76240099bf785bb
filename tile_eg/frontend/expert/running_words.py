"""Words of a kernel that is kept that go from element to element: running sums and products, places of extremes, transposes.

There is no vector instruction for them: the scalar unit does one element after the other, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from tile_eg.errors import Note, Span, TileError
from tile_eg.frontend.expert.by_elements import at, written
from tile_eg.frontend.expert.extents import shape_of
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.expert.steps import cast_into, cast_to, room_in
from tile_eg.frontend.expert.unaligned import loop
from tile_eg.frontend.expert.variables import set_to
from tile_eg.frontend.expert.vectors import ub
from tile_eg.frontend.expert.whole_words import of_squares
from tile_eg.frontend.python.values import as_region
from tile_eg.frontend.python.words import known
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Assign
from tile_eg.ir.program import Formula, Tile
from tile_eg.ops.types import F16, F32, I32, DType

READ = (F16, F32, I32)
"""Element types that the scalar unit computes with."""


def _axis(rank: int, dim: Any, span: Span) -> int:
    axis = known(dim, "dim", span)
    if not -rank <= axis < rank or rank > 2:
        help = "take planes one at a time: x[h, :, :]" if rank > 2 else "-1 is the last one"
        raise TileError(f"dim {axis} of a tile of {rank} dimensions is not gone along here", span, help=help)
    return axis % rank


def _computed_in(x: Place, to: Place | None = None) -> DType:
    """What the scalar unit computes in: the elements' own type where it knows that, and the result is of it."""
    own = x.dtype in READ and (to is None or to.dtype == x.dtype)
    return x.dtype if own else I32 if x.dtype.whole else F32


def _slow(r: ExpertReader, word: str, span: Span) -> None:
    r.notes.append(Note(f"T.{word} is done element by element by the scalar unit: no vector instruction does it", span))


def _element(x: Place, across: bool, line: Expr, at: Expr) -> Tile:
    """Element `at` of row `line`, or of column `line` where it is not `across`."""
    tile, (row, col) = x.tile(), (line, at) if across else (at, line)
    return Tile(tile.buffer, tile.slot, tile.row + row, tile.col + col)


def _kept(r: ExpertReader, wish: str, whole: bool) -> str:
    name = r.unique(wish)
    r.scalars[name] = whole
    r.variables.add(name)
    return name


def _value(name: str, whole: bool) -> Formula:
    return Formula("scalar", (name,), whole)


def _read(x: Tile, dtype: DType) -> Formula:
    return Formula("element", (x,), dtype is I32)


def _running(
    op: str, word: str, r: ExpertReader, span: Span, src: Any, dst: Any = None, dim: Any = 0, reverse: Any = False
) -> None:
    """Each element with all before it, from the end with `reverse`; floats add up in float32."""
    x, to = ub(r, src, span), ub(r, src if dst is None else dst, span)
    shape = as_region(src, span).shape
    if (to.rows, to.cols) != (x.rows, x.cols) or not isinstance(reverse, bool):
        raise TileError(f"{x.rows} x {x.cols} elements have as many running ones, not {to.rows} x {to.cols}", span)
    if to.dtype.whole and (not x.dtype.whole or to.dtype.bits < x.dtype.bits):
        raise TileError(f"running ones of {x.dtype} are not kept in {to.dtype}", span, help=f"keep them in {x.dtype} or f32")
    across = _axis(len(shape), dim, span) == len(shape) - 1
    lines, count = (x.rows, x.cols) if across else (x.cols, x.rows)
    there, dtype = _existing(r, x, across, span), _computed_in(x, to)
    source, made = cast_to(r, span, x, dtype), to if to.dtype == dtype else room_in(r, to, dtype, 1)
    whole = dtype is I32
    name = _kept(r, word, whole)

    def step(line: Expr, n: Expr) -> None:
        at = there - 1 - n if reverse else n
        joined = Formula(op, (_value(name, whole), _read(_element(source, across, line, at), dtype)), whole)
        set_to(r, name, joined, span)
        r.instr("store_element", _element(made, across, line, at), value=_value(name, whole), span=span)

    def one(line: Expr) -> None:
        r.place_node(pr.AIV, pr.Scalar(name, Formula("number", (0.0 if op == "add" else 1.0,), whole), span))
        loop(r, span, "n", there, count, lambda n: step(line, n))

    loop(r, span, "line", lines, lines, one)
    if made is not to:
        cast_into(r, span, to, made)
    if r.ends is not None:
        r.ends.alike(r, to, x)
    _slow(r, word, span)


def _existing(r: ExpertReader, x: Place, across: bool, span: Span) -> Expr:
    """How many elements of each row or column exist."""
    known = x if r.ends is None else r.ends.of(r, x, across, span)
    return known.valid_cols if across else known.valid_rows


def _place(op: str, word: str, r: ExpertReader, span: Span, buffer: Any, out: Any = None, dim: Any = -1) -> None:
    """The first place of the largest or smallest element of each row or column."""
    if out is None:
        raise TileError(f"T.{word} writes a buffer", span, help=f"T.{word}(buffer, out, dim=-1)")
    x, to = ub(r, buffer, span), ub(r, out, span)
    shape = as_region(buffer, span).shape
    across = _axis(len(shape), dim, span) == len(shape) - 1
    lines, count = (x.rows, x.cols) if across else (x.cols, x.rows)
    if to.count != lines or not to.whole:
        raise TileError(f"{lines} places take a buffer of as many elements, not {to.rows} x {to.cols}", span)
    there, source = _existing(r, x, across, span), cast_to(r, span, x, _computed_in(x))
    whole = source.dtype is I32
    best, at = _kept(r, "best", whole), _kept(r, "place", True)
    worst = (-(2.0**31) if op == "gt" else 2.0**31 - 1) if whole else -inf if op == "gt" else inf

    def step(line: Expr, n: Expr) -> None:
        new = _read(_element(source, across, line, n), source.dtype)
        better = Formula(op, (new, _value(best, whole)), True)
        set_to(r, at, Formula("select", (better, Formula("index", (n,), True), _value(at, True)), True), span)
        set_to(r, best, Formula("select", (better, new, _value(best, whole)), whole), span)

    def one(line: Expr) -> None:
        r.place_node(pr.AIV, pr.Scalar(best, Formula("number", (worst,), whole), span))
        r.place_node(pr.AIV, pr.Scalar(at, Formula("number", (0.0,), True), span))
        loop(r, span, "n", there, count, lambda n: step(line, n))
        tile = to.tile()
        found = _value(at, True) if to.dtype.whole else Formula("cast", (_value(at, True),), False)
        r.instr("store_element", Tile(tile.buffer, tile.slot, tile.row, tile.col + line), value=found, span=span)

    loop(r, span, "line", lines, lines, one)
    if r.ends is not None:
        r.ends.one_a_line(r, to, x, across)
    _slow(r, word, span)


def transposed(r: ExpertReader, span: Span, dst: Any, src: Any) -> None:
    """dst[j, i] = src[i, j]: whole squares of 16 rows of 32 bytes by instructions, others one by one."""
    to, x = ub(r, dst, span), ub(r, src, span)
    if (to.rows, to.cols) != (x.cols, x.rows):
        raise TileError(f"{x.rows} x {x.cols} elements become {x.cols} x {x.rows}, not {to.rows} x {to.cols}", span)
    if of_squares(x) and to.whole and to.dtype == x.dtype:
        r.instr("vtranspose", to.operand, x.operand, cols=ix.const(x.count), steps=(x.rows, x.cols), span=span)
        if r.ends is not None and all((p.rows, p.cols) == shape_of(r, p.tile()) for p in (to, x)):
            r.ends.alike(r, to, x, turned=True)
        return
    sizes = [to.rows, to.cols]
    names = [r.unique(n) for n in "ij"]
    r.grid.update({n: (0, size - 1) for n, size in zip(names, sizes, strict=True)})
    i, j = map(ix.var, names)
    target, value = at(as_region(dst, span), i, j), at(as_region(src, span), j, i)
    written(r, Assign(target, value, span), names, sizes)


WORDS: dict[str, Callable[..., Any]] = {
    **{word: partial(_running, "add", word) for word in ("cumsum", "vcumsum")}, "cumprod": partial(_running, "mul", "cumprod"),
    "argmax": partial(_place, "gt", "argmax"), "argmin": partial(_place, "lt", "argmin"),
    "tile.transpose": transposed, "transpose": lambda r, span, src, dst: transposed(r, span, dst, src),
}  # fmt: skip
