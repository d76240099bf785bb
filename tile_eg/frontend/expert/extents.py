"""How much of a buffer exists: its rows and columns that a tensor's end has not cut off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tile_eg.frontend import conditions
from tile_eg.frontend.expert.places import Held
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval
from tile_eg.ir.program import Buffer, Instr, Tile

Extent = Expr | None
"""How many rows or columns exist; None where that is not followed."""
Extents = tuple[Extent, Extent]
NOT_FOLLOWED: Extents = (None, None)
Shape = tuple[int, int]


class Buffers(Protocol):
    """What is asked of a reader: its buffers by name, and what its indices may be."""

    held: dict[str, Held]
    own: dict[str, Buffer]
    views: dict[str, str]

    @property
    def ranges(self) -> dict[str, Interval]: ...


def lesser(a: Extent, b: Extent, size: int) -> Extent:
    """How much exists of what is made of two of one size; None where that is not followed."""
    if a is None or b is None:
        return None
    if a == b or b.value == size:
        return a
    return b if a.value == size else None


def shape_of(r: Buffers, t: Tile) -> Shape:
    """The rows and columns of a buffer, of one slot of it where it has several."""
    if t.buffer in r.held:
        made = r.held[t.buffer].buffer()
        return made.rows, made.cols
    return r.own[t.buffer].rows, r.own[t.buffer].cols


def has_slots(r: Buffers, name: str) -> bool:
    """Whether a name stands for several tiles."""
    return (r.held[name].buffer() if name in r.held else r.own[name]).slots > 1


def left_of(extents: Extents, variable: str) -> Extents:
    """What is still known behind the loop of a variable."""
    down, along = (None if e is not None and variable in ix.variables(e) else e for e in extents)
    return down, along


def either(states: Sequence[Extents], first: Expr | None, several: bool, ranges: Mapping[str, Interval]) -> Extents:
    """What exists behind a branch of which one arm is done; of two, the `first` one where that condition holds. A buffer of
    `several` tiles has one state for all of them. Variables are in `ranges`."""
    if len(set(states)) == 1:
        return states[0]
    if len(states) != 2 or first is None or several:
        return NOT_FOLLOWED
    down, along = (chosen(first, x, y, ranges) for x, y in zip(*states, strict=True))
    return down, along


def chosen(condition: Expr, x: Extent, y: Extent, ranges: Mapping[str, Interval]) -> Extent:
    """x where the condition holds, else y. It says that it is no more than the larger one, which its form alone does not."""
    if x == y or x is None or y is None:
        return x if x == y else None
    most = max(ix.bounds(e, ranges)[1] for e in (x, y))
    return ix.simplified(ix.minimum(y + condition * (x - y), most), ranges)


def unless(other: Expr, there: Expr) -> Expr:
    """That something exists, where the other arm of a choice is not taken."""
    return there if there == ix.ONE else conditions.either(other, there, None)  # type: ignore[return-value]


def all_of(r: Buffers, i: Instr) -> bool:
    """Whether an instruction writes all of its result's buffer, as far as that is used."""
    assert isinstance(i.dst, Tile)
    rows, cols = shape_of(r, i.dst)
    if i.dst.buffer in r.own and i.dst.buffer not in r.held:
        return (i.dst.row.value, i.dst.col.value) == (0, 0)
    if (i.dst.row.value, i.dst.col.value) != (0, 0):
        return False
    if i.op.startswith(("vrow", "vcol")):
        return True
    return i.rows.value == rows and i.cols.value == cols or (i.rows * i.cols).value == rows * cols
