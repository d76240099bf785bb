"""Windows of UB whose rows begin between blocks of 32 bytes: the scalar unit copies them to rows that do not, and back.

Neither a vector instruction nor a transfer takes such rows. What begins where only run time knows is left to the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_eg.errors import Note, Span
from tile_eg.frontend.expert.extents import shape_of
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader, On
from tile_eg.frontend.ssa.pieces import multiple_of
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import ZERO, Expr
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ir.program import Formula, Tile
from tile_eg.ops.types import DType, Level


def is_unaligned(r: ExpertReader, p: Place) -> bool:
    """Whether a row of a window in UB surely begins between two blocks of 32 bytes, in one of the loops' trips at least."""
    if p.level is not Level.UB:
        return False
    tile, size = p.tile(), p.dtype.bytes
    pitch = pitch_of(r, tile)
    if p.rows > 1 and pitch * size % BLOCK_BYTES:
        return True
    first = ix.simplified((tile.row * pitch + tile.col) * size, r.ranges)
    begins = ix.simplified(first % BLOCK_BYTES, r.ranges)
    if begins.value is not None:
        return begins.value != 0
    return bool(multiple_of(first) % BLOCK_BYTES and pitch * size % BLOCK_BYTES) or _sometimes(r, begins)


def _sometimes(r: ExpertReader, begins: Expr) -> bool:
    """Whether this is not 0 in the first trip of each loop, or in the second one of one of them."""
    low = {name: r.ranges[name][0] for name in ix.variables(begins) if name in r.ranges}
    second = ({name: n + 1} for name, n in low.items() if n < r.ranges[name][1])
    places = ({name: ix.const(n) for name, n in {**low, **other}.items()} for other in ({}, *second))
    return any(ix.simplified(ix.substitute(begins, place), r.ranges).value for place in places)


def pitch_of(r: ExpertReader, tile: Tile) -> int:
    """Elements from one row of a buffer to the next."""
    return r.held[tile.buffer].cols if tile.buffer in r.held else r.own[tile.buffer].pitch


def aligned(r: ExpertReader, span: Span, p: Place, number: int = 0) -> Place:
    """The window, or a copy of it in rows that begin at multiples of 32 bytes, under this number."""
    if not is_unaligned(r, p):
        return p
    made = room(r, p, number)
    each_element(r, span, p.rows, p.cols, lambda i, j: put(r, span, _at(made.tile(), i, j), _at(p.tile(), i, j)))
    if r.ends is not None and (p.rows, p.cols) == shape_of(r, p.tile()):
        r.ends.alike(r, made, p)
    told(r, span, p)
    return made


def back(r: ExpertReader, span: Span, to: Place, made: Place) -> None:
    """The window from the copy of it."""
    each_element(r, span, to.rows, to.cols, lambda i, j: put(r, span, _at(to.tile(), i, j), _at(made.tile(), i, j)))
    told(r, span, to)


def room(r: ExpertReader, p: Place, number: int = 0) -> Place:
    """As many rows and columns, each row at a multiple of 32 bytes."""
    cols = padded(p.cols, p.dtype)
    made = own_room(r, p.dtype, p.rows, cols, number)
    sizes: dict[str, Any] = {"valid_rows": ix.const(p.rows), "valid_cols": ix.const(p.cols)}
    return replace(p, operand=made, whole=p.rows == 1 or cols == p.cols, element=False, **sizes)


def padded(count: int, dtype: DType) -> int:
    """So many elements in whole blocks."""
    lanes = BLOCK_BYTES // dtype.bytes
    return -(-count // lanes) * lanes


def own_room(r: ExpertReader, dtype: DType, rows: int, cols: int, number: int = 0) -> Tile:
    """Room in UB for rows that begin at multiples of 32 bytes."""
    key = f"rows {dtype} {rows} {cols} {number}"
    if key not in r.own_keys:
        r.own_keys[key] = name = r.unique("rows")
        r.own[name] = pr.Buffer(name, Level.UB, dtype, rows, cols, cols)
    return Tile(r.own_keys[key])


def put(r: ExpertReader, span: Span, to: Tile, of: Tile) -> None:
    """One element, copied by the scalar unit."""
    r.instr("store_element", to, value=Formula("element", (of,), False), span=span)


def each_element(r: ExpertReader, span: Span, rows: int | Expr, cols: int | Expr, one: Callable[[Expr, Expr], None],
                 most: tuple[int, int] | None = None) -> None:  # fmt: skip
    """What `one` does for each row and column, of which there are at most so many where run time says it."""
    limits = most or (int(rows), int(cols))  # type: ignore[arg-type]

    def columns(i: Expr) -> None:
        loop(r, span, "j", cols, limits[1], lambda j: one(i, j))

    loop(r, span, "i", rows, limits[0], columns)


def loop(r: ExpertReader, span: Span, name: str, trips: int | Expr, most: int, body: Callable[[Expr], None]) -> None:
    """A loop over the numbers below `trips`, which are at most `most`."""
    until = trips if isinstance(trips, Expr) and trips.value != most else None
    if most == 1 and until is None:
        return body(ZERO)
    with r.variable(name, most) as var, r.block(repeats=True) as found:
        body(ix.var(var))
    r.statements.append(On(None, pr.Loop(var, most, tuple(found), span, until)))  # type: ignore[arg-type]
    return None


def _at(tile: Tile, i: Expr, j: Expr) -> Tile:
    return replace(tile, row=tile.row + i, col=tile.col + j)


def told(r: ExpertReader, span: Span, p: Place) -> None:
    name = p.tile().buffer
    cols = padded(pitch_of(r, p.tile()), p.dtype)
    wider = f"; rows of {cols} elements would" if cols != pitch_of(r, p.tile()) else ""
    text = f"the scalar unit copies single elements here: rows of {name} do not begin at multiples of 32 bytes{wider}"
    if not any(n.text == text and n.span == span for n in r.notes):
        r.notes.append(Note(text, span))


# Copies from and to GM


def is_column(near: Place, far: Place) -> bool:
    """Whether a vector of UB is a column of a tensor."""
    return near.rows == 1 < near.cols == far.rows and far.cols == 1


def loaded(r: ExpertReader, span: Span, source: Place, target: Place) -> None:
    """A window of a tensor, row by row through a row that begins at a multiple of 32 bytes."""
    if is_column(target, source):
        return _column(r, span, source, lambda row, i: _in(r, span, source, row, _at(target.tile(), ZERO, i), i))
    row = own_room(r, target.dtype, 1, padded(target.cols, target.dtype))

    def one(i: Expr) -> None:
        r.instr("gm_to_ub", row, _row_of(source, i), rows=ix.ONE, cols=source.valid_cols, span=span)
        loop(r, span, "j", source.valid_cols, target.cols, lambda j: put(r, span, _at(target.tile(), i, j), _at(row, ZERO, j)))

    loop(r, span, "i", source.valid_rows, target.rows, one)
    return told(r, span, target)


def stored(r: ExpertReader, span: Span, source: Place, target: Place, atomic: str) -> None:
    """A window to a tensor, row by row through a row that begins at a multiple of 32 bytes."""
    if is_column(source, target):
        return _column(r, span, target, lambda row, i: _out(r, span, target, row, _at(source.tile(), ZERO, i), i, atomic))
    row = own_room(r, source.dtype, 1, padded(source.cols, source.dtype))

    def one(i: Expr) -> None:
        loop(r, span, "j", target.valid_cols, source.cols, lambda j: put(r, span, _at(row, ZERO, j), _at(source.tile(), i, j)))
        r.instr("ub_to_gm", _row_of(target, i), row, rows=ix.ONE, cols=target.valid_cols, atomic=atomic, span=span)

    loop(r, span, "i", target.valid_rows, source.rows, one)
    return told(r, span, source)


def _column(r: ExpertReader, span: Span, far: Place, one: Callable[[Tile, Expr], None]) -> None:
    """A column of a tensor, element by element."""
    row = own_room(r, far.dtype, 1, padded(1, far.dtype))
    loop(r, span, "i", far.valid_rows, far.rows, lambda i: one(row, i))
    r.notes.append(Note("a column of a tensor is moved element by element", span))


def _in(r: ExpertReader, span: Span, far: Place, row: Tile, near: Tile, i: Expr) -> None:
    r.instr("gm_to_ub", row, _row_of(far, i), span=span)
    put(r, span, near, row)


def _out(r: ExpertReader, span: Span, far: Place, row: Tile, near: Tile, i: Expr, atomic: str) -> None:
    put(r, span, row, near)
    r.instr("ub_to_gm", _row_of(far, i), row, atomic=atomic, span=span)


def _row_of(p: Place, i: Expr) -> Any:
    assert isinstance(p.operand, pr.Gm)
    return replace(p.operand, offset=p.operand.offset + i * p.operand.stride, stride=p.cols)
