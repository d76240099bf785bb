"""What exists of the buffers in UB, in a kernel that is done in the order of its statements: what lies beyond the end of a tensor
takes no part in a reduction, as in kernels that are searched.

A kernel that its author keeps has zeros there, or his padding, and sees them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.places import Held, Place, same_memory
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval
from tile_eg.ir.program import Buffer, Instr, Tile

Extent = Expr | None
"""How many rows or columns exist; None where that is not followed."""
Extents = tuple[Extent, Extent]
NOT_FOLLOWED: Extents = (None, None)
Shape = tuple[int, int]
Arm = TypeVar("Arm")
ADDED = ("vaxpy", "vmuladd")
"""Instructions that add to what their result was."""
PADDED = "say what stands there: T.copy(A[i, j], a, pad_value=0.0), for a maximum -T.infinity()"
MOVED = ("vgather", "vevery", "vsort", "vsort32", "vmerge", "vtranspose", "vbrcb", "store_element")
"""Instructions whose results do not lie as their operands do."""


class Buffers(Protocol):
    """What is asked of a reader: its buffers by name, and what its indices may be."""

    held: dict[str, Held]
    own: dict[str, Buffer]
    views: dict[str, str]

    @property
    def ranges(self) -> dict[str, Interval]: ...


@dataclass(frozen=True)
class Trips:
    """What was known before a loop."""

    known: dict[str, Extents]
    fresh: set[str]
    looked: dict[str, Span]


@dataclass
class Ends:
    """Of each buffer of which not all is there: how many rows and columns are. `filled` are all that something was put into,
    `fresh` those for which that was in this trip of a loop, `looked` those that were reduced in it before."""

    known: dict[str, Extents] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    looked: dict[str, Span] = field(default_factory=dict)

    def loaded(self, r: Buffers, target: Place, source: Place, padded: bool) -> None:
        """A window of a tensor was loaded."""
        self._loaded(r, target, source, padded)
        self.shared(r.views, target.tile().buffer)

    def _loaded(self, r: Buffers, target: Place, source: Place, padded: bool) -> None:
        name, (rows, cols) = target.tile().buffer, _shape(r, target.tile())
        whole = (target.rows, target.cols) == (rows, cols) or (target.whole and target.count == rows * cols)
        self._put_into(name)
        if padded or not source.cut:
            if whole:
                self.known.pop(name, None)
            elif name in self.known and not self._exists(r, target.tile(), ix.const(target.rows), ix.const(target.cols)):
                self.known[name] = NOT_FOLLOWED
            return
        before = self.known.get(name, (ix.const(rows), ix.const(cols)))
        if whole and (source.rows, source.cols) == (rows, cols):
            self.known[name] = source.valid_rows, source.valid_cols
        elif target.cols == cols == source.cols and source.valid_rows.value == source.rows:
            alike = before[1] in (None, ix.const(cols), source.valid_cols)
            self.known[name] = before[0], source.valid_cols if alike else None
        elif target.cols == cols == source.cols and source.valid_cols.value == cols:
            self.known[name] = None, before[1]
        else:
            self.known[name] = NOT_FOLLOWED

    def after(self, r: Buffers, i: Instr) -> None:
        """An instruction of the vector core was done."""
        if not isinstance(i.dst, Tile) or i.op == "gm_to_ub" or i.core != "AIV":
            return
        tiles = [t for t in i.srcs if isinstance(t, Tile)]
        tiles += [t for t in (i.value.elements() if i.value else ()) if isinstance(t, Tile) and t.buffer != i.dst.buffer]
        found = [self.known[t.buffer] for t in tiles if t.buffer in self.known]
        whole, name = _all_of(r, i), i.dst.buffer
        self._put_into(name)
        if found:
            self.known[name] = self._of(r, i, tiles) if whole else NOT_FOLLOWED
        elif name in self.known and i.op not in ADDED:
            if whole and i.op != "store_element":
                self.known.pop(name)
            elif not self._exists(r, i.dst, i.rows, i.cols):
                self.known[name] = NOT_FOLLOWED
        self.shared(r.views, name)

    def shared(self, views: Mapping[str, str], name: str) -> None:
        """What exists of a buffer that was written is not followed where it has another name too."""
        names = same_memory(views, [name])
        if len(names) > 1 and self.known.keys() & names:
            self.known |= dict.fromkeys(names, NOT_FOLLOWED)
        for written in (self.filled, self.fresh):
            written |= names if name in written else set()

    def _put_into(self, name: str) -> None:
        self.filled.add(name)
        self.fresh.add(name)

    def _exists(self, r: Buffers, t: Tile, rows: Expr, cols: Expr) -> bool:
        """Whether all of a window of a buffer surely exists."""
        ends = zip((t.row + rows, t.col + cols), self.known[t.buffer], strict=True)
        return all(extent is not None and ix.bounds(extent - end, r.ranges)[0] >= 0 for end, extent in ends)

    def one_of(self, arms: Iterable[Arm]) -> Iterator[Arm]:
        """The arms of a branch, of which one is done: behind them is known what is so behind each."""
        before, filled, found = self.known, self.filled, []
        for arm in arms:
            self.known, self.filled = dict(before), set(filled)
            yield arm
            found.append((self.known, self.filled))
        states = {n: {k.get(n, NOT_FOLLOWED) for k, of in found if n in of} for known, _ in found for n in known}
        self.known = {n: each.pop() if len(each) == 1 else NOT_FOLLOWED for n, each in states.items()}
        self.filled = {n for _, of in found for n in of}

    def _of(self, r: Buffers, i: Instr, tiles: list[Tile]) -> Extents:
        assert isinstance(i.dst, Tile)
        rows, cols = _shape(r, i.dst)
        if i.op.startswith(("vrow", "vcol")):
            first = self.known.get(tiles[0].buffer, NOT_FOLLOWED)
            return ix.ONE, first[0] if i.op.startswith("vrow") else first[1]
        if i.op in MOVED:
            return NOT_FOLLOWED
        down: Extent = ix.const(rows)
        along: Extent = ix.const(cols)
        for n, t in enumerate(tiles):
            full, own = _shape(r, t), self.known.get(t.buffer)
            if own is None or (i.op.endswith("_rows") and n == 1):
                continue
            if full != (rows, cols) and not (i.op.endswith("_cols") and full == (1, cols)):
                return NOT_FOLLOWED
            down = down if i.op.endswith("_cols") and n == 1 else _lesser(down, own[0], rows)
            along = _lesser(along, own[1], cols)
        return down, along

    def check_sorted(self, r: Buffers, x: Place, count: int, span: Span) -> None:
        """TileError where not all of the first elements of a window surely exist."""
        down, along = self.known.get(x.tile().buffer, (ix.const(x.rows), ix.const(x.cols)))
        row = x.rows == 1 and along is not None and ix.bounds(along, r.ranges)[0] >= count
        if not row and (down, along) != (ix.const(x.rows), ix.const(x.cols)):
            what = f"{count} elements of {x.tile().buffer} are sorted, of which a tensor's end may cut off some"
            raise TileError(what, span, help="say what stands there: T.copy(A[i, j], a, pad_value=-T.infinity())")

    def alike(self, r: Buffers, to: Place, x: Place) -> None:
        """As much of `to` exists as of `x`."""
        name, own = to.tile().buffer, self.known.get(x.tile().buffer)
        self.known.pop(name, None)
        if own is not None:
            self.known[name] = own
        self.shared(r.views, name)

    def one_a_line(self, r: Buffers, to: Place, x: Place, across: bool) -> None:
        """One element of `to` exists for each row of `x` (`across`) or column."""
        name, own = to.tile().buffer, self.known.get(x.tile().buffer)
        self.known.pop(name, None)
        if own is not None:
            self.known[name] = ix.ONE, own[0] if across else own[1]
        self.shared(r.views, name)

    def begun(self) -> Trips:
        """A loop begins: what is known before it."""
        before = Trips(dict(self.known), self.fresh, self.looked)
        self.fresh, self.looked = set(), {}
        return before

    def left(self, variable: str, before: Trips) -> None:
        """A loop was left: what depends on its variable is not followed any further. TileError for what was reduced in a trip and
        of which another part exists in the next one."""
        for name, extents in self.known.items():
            down, along = (None if e is not None and variable in ix.variables(e) else e for e in extents)
            self.known[name] = down, along
        for name, span in self.looked.items():
            if self.known.get(name) != before.known.get(name):
                what = f"how much of {name} exists differs from trip to trip: it is loaded behind this, up to a tensor's end"
                raise TileError(what, span, help=PADDED)
        self.looked = before.looked | {name: span for name, span in self.looked.items() if name not in before.fresh}
        self.fresh |= before.fresh

    def of(self, r: Buffers, x: Place, across: bool, span: Span) -> Place:
        """The window with what exists of it along the axis that is reduced. TileError where that is not followed."""
        name = x.tile().buffer
        if name not in self.fresh:
            self.looked.setdefault(name, span)
        if name not in self.known:
            return x
        extents, full = self.known[name], _shape(r, x.tile())
        extent, size = (extents[1], full[1]) if across else (extents[0], full[0])
        if extent is not None and extent.value == size:
            return x
        at = x.tile().col if across else x.tile().row
        low = 0 if extent is None else ix.bounds(extent, r.ranges)[0]
        if extent is None or low < 1 or at.value != 0 or (x.cols if across else x.rows) != size:
            what = f"how much of {name} exists is not followed so far: a tensor's end cuts off what it was made of"
            raise TileError(what, span, help=PADDED)
        return replace(x, valid_cols=extent) if across else replace(x, valid_rows=extent)


def _lesser(a: Extent, b: Extent, size: int) -> Extent:
    if a is None or b is None:
        return None
    if a == b or b.value == size:
        return a
    return b if a.value == size else None


def _shape(r: Buffers, t: Tile) -> Shape:
    if t.buffer in r.held:
        made = r.held[t.buffer].buffer()
        return made.rows, made.cols
    return r.own[t.buffer].rows, r.own[t.buffer].cols


def _all_of(r: Buffers, i: Instr) -> bool:
    """Whether an instruction writes all of its result's buffer, as far as that is used."""
    assert isinstance(i.dst, Tile)
    rows, cols = _shape(r, i.dst)
    if i.dst.buffer in r.own and i.dst.buffer not in r.held:
        return (i.dst.row.value, i.dst.col.value) == (0, 0)
    if (i.dst.row.value, i.dst.col.value) != (0, 0):
        return False
    if i.op.startswith(("vrow", "vcol")):
        return True
    return i.rows.value == rows and i.cols.value == cols or (i.rows * i.cols).value == rows * cols
