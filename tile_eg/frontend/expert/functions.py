"""Functions of numbers that the scalar unit does not have: one element of UB, made by vector instructions and read back."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.errors import Note, Span
from tile_eg.frontend.expert.accesses import Axes
from tile_eg.frontend.expert.parallel import statement
from tile_eg.frontend.expert.places import Held
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.expert.variables import converted, keep
from tile_eg.ir.index import ZERO
from tile_eg.ir.kernel import Assign, Binary, Cast, Region, Unary
from tile_eg.ir.program import AIV, Formula, Scalar, Tile
from tile_eg.ops.types import F32, Level

ROOM = "function of numbers"
SLOW = "is made by vector instructions on one element, which the scalar unit waits for: over a vector all are made at once"


def of_numbers(r: ExpertReader, e: Unary | Binary | Cast, operands: tuple[Formula, ...], span: Span | None) -> Formula:
    """A function of numbers, or a number rounded to a shorter type, in f32; it does not exist where one of them does not."""
    xs = [keep(r, "number", converted(x, False), span) for x in operands]
    room, col = _room(r), r.unique("i")
    r.grid[col] = (0, 0)
    value = replace(e, **dict(zip("xy", xs, strict=False)))
    statement(r, Assign(Region(room, (ZERO,), (None,), span), value, span), Axes(None, col, 1, 1))
    word = f"cast to {e.dtype.numpy}" if isinstance(e, Cast) else e.op
    made = keep(r, f"{word.split()[0]}_of_number", Formula("element", (Tile(room),)), span)
    _exists_with(r, made.name, [x.name for x in xs], span)
    _told(r, word, span)
    return Formula("scalar", (made.name,))


def _room(r: ExpertReader) -> str:
    """The element that all functions share: each is read before the next one is made."""
    if ROOM not in r.own_keys:
        r.own_keys[ROOM] = name = r.unique("function")
        r.held[name] = Held(name, Level.UB, F32, (1,))
    return r.own_keys[ROOM]


def _exists_with(r: ExpertReader, name: str, operands: list[str], span: Span | None) -> None:
    if r.ends is None or (there := r.ends.meant(names=operands)).value == 1:
        return
    flag = r.ends.beyond[name] = r.unique(f"{name}_there")
    r.scalars[flag] = True
    r.place_node(AIV, Scalar(flag, Formula("index", (there,), True), span))


def _told(r: ExpertReader, op: str, span: Span | None) -> None:
    note = Note(f"{op} of a number {SLOW}", span)
    if note not in r.notes:
        r.notes.append(note)
