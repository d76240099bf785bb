"""What exists of the buffers in UB, in a kernel that is done in the order of its statements: what lies beyond the end of a tensor
takes no part in a reduction, as in kernels that are searched.

A kernel that its author keeps has zeros there, or his padding, and sees them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeVar

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.carried import Carried
from tile_eg.frontend.expert.extents import (
    NOT_FOLLOWED,
    Buffers,
    Extent,
    Extents,
    all_of,
    either,
    has_slots,
    left_of,
    lesser,
    shape_of,
    unless,
)
from tile_eg.frontend.expert.places import Place, same_memory
from tile_eg.frontend.expert.states import Part, Stored, Trips, mentions, with_number
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in, elements_in
from tile_eg.ir.program import Formula, Gm, Instr, Tile
from tile_eg.ops.elementwise import BINARY, UNARY

Arm = TypeVar("Arm")
ADDED = ("vaxpy", "vmuladd")
"""Instructions that add to what their result was."""
ALIKE = {"vcopy", "vcast", "vdup", *(f"v{op}{s}" for op in (*UNARY, *BINARY) for s in ("", "s"))}
"""Instructions whose results lie as their operands do, element by element."""
PADDED = "say what stands there: T.copy(A[i, j], a, pad_value=0.0), for a maximum -T.infinity()"
MOVED = ("vgather", "vevery", "vsort", "vsort32", "vmerge", "vtranspose", "vbrcb", "store_element")
"""Instructions whose results do not lie as their operands do."""


@dataclass
class Ends:
    """Of each buffer of which not all is there: how many rows and columns are. `filled` are all that something was put into,
    `fresh` those for which that was in this trip of a loop, `looked` those that were reduced in it before, `late` those that were
    read in it before, by axes, `moved` those that were then loaded. `parts` has the window
    of a buffer that was written last, where it was not the whole buffer. `beyond` are numbers that the scalar unit keeps, of
    elements that may lie beyond an end, each with the name under which it keeps whether they do not. `stored` are windows of
    tensors that the kernel has written, with what exists of them (None: all). `inside` are single elements of tensors that may
    lie beyond an end, each with where it does not."""

    known: dict[str, Extents] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    looked: dict[str, Span] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)
    stored: dict[str, dict[Stored, Extents | None]] = field(default_factory=dict)
    late: dict[tuple[str, int], Span | None] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)
    beyond: dict[str, str] = field(default_factory=dict)
    inside: dict[Gm, Expr] = field(default_factory=dict)
    carried: Carried = field(default_factory=Carried)

    def there(self, r: Buffers, value: Formula, beside: Tile | None = None) -> Expr:
        """That all elements exist which a formula reads, as far as that is followed. One at the place of `beside` matters not;
        one that an arm of a choice by indices takes, where that arm is chosen."""
        if value.op == "select" and value.args[0].op == "index":
            holds, x, y = value.args[0].args[0], *(self.there(r, arm, beside) for arm in value.args[1:])
            return reduce(ix.both, (self.meant(holds), unless(1 - holds, x), unless(holds, y)))
        if any(isinstance(a, Formula) for a in value.args):
            return reduce(ix.both, (self.there(r, a, beside) for a in value.args), ix.ONE)
        found = reduce(ix.both, (self.inside.get(t, ix.ONE) for t in value.operands() if isinstance(t, Gm)), ix.ONE)
        for t in value.elements():
            if beside is not None and (t.row, t.col) == (beside.row, beside.col):
                continue
            down, along = self.known.get(t.buffer, NOT_FOLLOWED)
            if down is not None and along is not None:
                rows, cols = shape_of(r, t)
                row, col = (ix.ZERO, t.col) if rows == 1 else (t.row + t.col // cols, t.col % cols)
                for at, end in ((row, down), (col, along)):
                    surely = ix.bounds(at - end, r.ranges)[1] < 0
                    found = found if surely else ix.both(found, ix.less(at, end))
        return ix.both(found, self.meant(*value.indices(), names=value.scalars()))

    def meant(self, *indices: Expr, names: Iterable[str] = ()) -> Expr:
        """That all numbers exist which the scalar unit keeps, those in indices and those of these names."""
        found = ix.ONE
        for name in sorted({*names, *(x.args[0] for e in indices for x in all_elements_in(e))} & self.beyond.keys()):
            found = ix.both(found, ix.scalar(self.beyond[name], 1))
        return found

    def put(self, r: Buffers, target: Place, extents: Extents) -> None:
        """So much of a window was written anew."""
        down, along = extents
        if down is not None and along is not None:
            return self.loaded(r, target, replace(target, valid_rows=down, valid_cols=along), False)
        name = target.tile().buffer
        whole = (target.rows, target.cols) == shape_of(r, target.tile()) and not has_slots(r, name)
        self._put_into(name)
        self.known[name] = extents if whole else NOT_FOLLOWED
        self.parts.pop(name, None)
        return self.shared(r, name)

    def loaded(self, r: Buffers, target: Place, source: Place, padded: bool) -> None:
        """A window of a tensor was loaded."""
        self.carried.zeros.add(target.tile().buffer)
        self._loaded(r, target, source, padded)
        self._part_loaded(r, target, source, padded)
        self.shared(r, target.tile().buffer)

    def _loaded(self, r: Buffers, target: Place, source: Place, padded: bool) -> None:
        name, (rows, cols) = target.tile().buffer, shape_of(r, target.tile())
        whole = (target.rows, target.cols) == (rows, cols) or (target.whole and target.count == rows * cols)
        new = name not in self.filled
        self._put_into(name)
        if not new and has_slots(r, name):
            full: Extents = ix.const(rows), ix.const(cols)
            there = full if padded else (source.valid_rows, source.valid_cols)
            if self.known.get(name, full) != there:
                self.known[name] = NOT_FOLLOWED
            return
        if padded or not source.cut:
            if whole:
                self.known.pop(name, None)
            elif name in self.known and not self._exists(r, target.tile(), ix.const(target.rows), ix.const(target.cols)):
                self.known[name] = NOT_FOLLOWED
            return
        full = ix.const(rows), ix.const(cols)
        down, along = self.known.get(name, full)
        down = down if down == full[0] else None
        if whole and (source.rows, source.cols) == (rows, cols):
            self.known[name] = source.valid_rows, source.valid_cols
        elif target.cols == cols == source.cols and source.valid_rows.value == source.rows:
            self.known[name] = down, source.valid_cols if new or along == source.valid_cols else None
        elif target.cols == cols == source.cols and source.valid_cols.value == cols:
            self.known[name] = None, along if along == full[1] else None
        else:
            self.known[name] = NOT_FOLLOWED

    def _part_loaded(self, r: Buffers, target: Place, source: Place, padded: bool) -> None:
        """Notes the window of a buffer that was loaded, where that is a part of it."""
        t, size = target.tile(), (target.rows, target.cols)
        self.parts.pop(t.buffer, None)
        if size != shape_of(r, t) and (source.rows, source.cols) == size and _is_fixed(t):
            full = ix.const(target.rows), ix.const(target.cols)
            self.parts[t.buffer] = Part(t.row, t.col, *size, full if padded else (source.valid_rows, source.valid_cols))

    def after(self, r: Buffers, i: Instr) -> None:
        """An instruction of the vector core was done."""
        if not isinstance(i.dst, Tile) or i.op == "gm_to_ub" or i.core != "AIV":
            return
        for t in i.reads():
            if isinstance(t, Tile) and t.buffer != i.dst.buffer:
                self.read(t.buffer, i.span)
        self.carried.computed(i, self.fresh)
        part, name, whole = self._part_of(r, i), i.dst.buffer, all_of(r, i)
        self._done(r, i)
        self.parts.pop(name, None)
        if part is not None and not whole:
            self.parts[name] = part
        elif part is not None and (part.rows, part.cols) == shape_of(r, i.dst) and self.known.get(name) == NOT_FOLLOWED:
            self.known[name] = part.extents
        self.shared(r, i.dst.buffer)

    def read(self, name: str, span: Span | None, axes: Iterable[int] = (0, 1)) -> None:
        """A buffer was read: what the trip before left there, unless it was written in this one."""
        for axis in axes if name not in self.fresh else ():
            self.late.setdefault((name, axis), span)

    def _part_of(self, r: Buffers, i: Instr) -> Part | None:
        """The window that an instruction writes element by element, with what exists of it."""
        assert isinstance(i.dst, Tile)
        rows, cols = i.rows.value, i.cols.value
        if rows is None or cols is None or i.op not in ALIKE or i.when != ix.ONE or not _is_fixed(i.dst):
            return None
        for t in i.srcs if rows == 1 else ():
            if isinstance(t, Tile) and (p := self.parts.get(t.buffer)) is not None and p.is_at(t, cols):
                rows, cols = p.rows, p.cols
                break
        found = [self._exists_of(r, t, rows, cols) for t in i.srcs if isinstance(t, Tile)]
        down, along = ((ix.const(rows), ix.const(cols)) if not found else found[0])
        for other in found[1:]:
            down, along = lesser(down, other[0], rows), lesser(along, other[1], cols)
        return Part(i.dst.row, i.dst.col, rows, cols, (down, along))

    def _exists_of(self, r: Buffers, t: Tile, rows: int, cols: int) -> Extents:
        """How much exists of an operand that is a window."""
        full = ix.const(rows), ix.const(cols)
        if t.buffer not in self.known:
            return full
        part, (down, along) = self.parts.get(t.buffer), self.known[t.buffer]
        if part is not None and part.is_at(t, rows * cols) and part.cols == cols:
            return part.extents
        height, width = shape_of(r, t)
        if t.col.value != 0 or cols != width:
            return NOT_FOLLOWED
        return full[0] if down == ix.const(height) else None, along

    def _done(self, r: Buffers, i: Instr) -> None:
        assert isinstance(i.dst, Tile)
        tiles = [t for t in i.srcs if isinstance(t, Tile)]
        tiles += [t for t in (i.value.elements() if i.value else ()) if isinstance(t, Tile) and t.buffer != i.dst.buffer]
        found = [self.known[t.buffer] for t in tiles if t.buffer in self.known]
        whole, name = all_of(r, i), i.dst.buffer
        self._put_into(name)
        if found:
            self.known[name] = self._of(r, i, tiles) if whole else NOT_FOLLOWED
        elif name in self.known and i.op not in ADDED:
            if whole and i.op != "store_element":
                self.known.pop(name)
            elif not self._exists(r, i.dst, i.rows, i.cols):
                self.known[name] = NOT_FOLLOWED

    def shared(self, r: Buffers, name: str) -> None:
        """What exists of a buffer that was written is followed under its other names where they have rows like its own."""
        names = same_memory(r.views, [name])
        rows, cols = shape_of(r, Tile(name))
        for other in names - {name} if self.known.keys() & names else ():
            alike = shape_of(r, Tile(other)) == (rows, cols)
            self.known[other] = self.known.get(name, (ix.const(rows), ix.const(cols))) if alike else NOT_FOLLOWED
        for other in names if len(names) > 1 else ():
            self.parts.pop(other, None)
        for written in (self.filled, self.fresh):
            written |= names if name in written else set()

    def _put_into(self, name: str) -> None:
        self.filled.add(name)
        self.fresh.add(name)

    def _exists(self, r: Buffers, t: Tile, rows: Expr, cols: Expr) -> bool:
        """Whether all of a window of a buffer surely exists."""
        ends = zip((t.row + rows, t.col + cols), self.known[t.buffer], strict=True)
        return all(extent is not None and ix.bounds(extent - end, r.ranges)[0] >= 0 for end, extent in ends)

    def one_of(self, r: Buffers, arms: Iterable[Arm], first: Expr | None = None) -> Iterator[Arm]:
        """The arms of a branch, of which one is done: behind them is known what is so behind each, and of two arms what is so
        where the condition of the `first` one holds, and where it does not."""
        before, filled, fresh, parts, found = self.known, self.filled, self.fresh, self.parts, []
        kept = set(parts)
        for arm in arms:
            self.known, self.filled, self.fresh, self.parts = dict(before), set(filled), set(fresh), dict(parts)
            yield arm
            found.append((self.known, self.filled, self.fresh))
            kept -= {name for name in kept if self.parts.get(name) != parts[name]}
        self.parts = {name: parts[name] for name in kept}
        self.filled = {n for _, of, _ in found for n in of}
        self.fresh = set.intersection(*(anew for *_, anew in found))
        self.known = {}
        for name in sorted({n for known, *_ in found for n in known}):
            full: Extents = tuple(map(ix.const, shape_of(r, Tile(name))))  # type: ignore[assignment]
            states = [known.get(name, full) for known, of, _ in found if name in of]
            self.known[name] = either(states, first, has_slots(r, name), r.ranges)

    def _of(self, r: Buffers, i: Instr, tiles: list[Tile]) -> Extents:
        assert isinstance(i.dst, Tile)
        rows, cols = shape_of(r, i.dst)
        if i.op.startswith(("vrow", "vcol")):
            first = self.known.get(tiles[0].buffer, NOT_FOLLOWED)
            found = first[0] if i.op.startswith("vrow") else first[1]
            return (found, ix.ONE) if cols == 1 < rows else (ix.ONE, found)
        if i.op == "vbrcb" and shape_of(r, tiles[0]) == (1, rows):
            return self.known.get(tiles[0].buffer, NOT_FOLLOWED)[1], ix.const(cols)
        if i.op == "vtranspose" and shape_of(r, tiles[0]) == i.steps == (cols, rows):
            turned = self.known.get(tiles[0].buffer, NOT_FOLLOWED)
            return turned[1], turned[0]
        if i.op in MOVED:
            return NOT_FOLLOWED
        down: Extent = ix.const(rows)
        along: Extent = ix.const(cols)
        for n, t in enumerate(tiles):
            full, own = shape_of(r, t), self.known.get(t.buffer)
            if own is None:
                continue
            if i.op.endswith("_rows") and n == 1:
                down = own[0] if down == ix.const(rows) and full[0] == rows and own[0] is not None else down
                continue
            if full != (rows, cols) and not (i.op.endswith("_cols") and full == (1, cols)):
                return NOT_FOLLOWED
            down = down if i.op.endswith("_cols") and n == 1 else lesser(down, own[0], rows)
            along = lesser(along, own[1], cols)
        return down, along

    def depends_on(self, name: str) -> bool:
        """Whether what is known goes by a number that the scalar unit keeps."""
        return any(mentions(part, name) for part in (self.known, self.parts, self.stored))

    def kept(self, name: str, now: Expr) -> None:
        """What is known goes by what the number of this name is `now`, not by what it will be."""
        self.known, self.parts = with_number(self.known, name, now), with_number(self.parts, name, now)
        self.stored = with_number(self.stored, name, now)

    def alike(self, r: Buffers, to: Place, x: Place, turned: bool = False) -> None:
        """As much of `to` exists as of `x`, of its columns as of the rows where it is `turned`."""
        name, own = to.tile().buffer, self.known.get(x.tile().buffer)
        self.known.pop(name, None)
        if own is not None:
            self.known[name] = own[::-1] if turned else own
        self.shared(r, name)

    def one_a_line(self, r: Buffers, to: Place, x: Place, across: bool) -> None:
        """One element of `to` exists for each row of `x` (`across`) or column."""
        name, own = to.tile().buffer, self.known.get(x.tile().buffer)
        self.known.pop(name, None)
        if own is not None:
            self.known[name] = ix.ONE, own[0] if across else own[1]
        self.shared(r, name)

    def begun(self) -> Trips:
        """A loop begins: what is known before it."""
        before = Trips(dict(self.known), set(self.filled), self.fresh, self.looked, self.late, self.moved, self.carried.begun())
        self.fresh, self.looked, self.parts, self.late, self.moved = set(), {}, {}, {}, set()
        return before

    def left(self, r: Buffers, variable: str, before: Trips, trips: int = 0) -> None:
        """A loop was left, which surely had so many `trips` (0: not known): what depends on its variable is not followed any
        further. TileError for what was reduced in a trip and of which another part exists in the next one."""
        self.carried.left(variable, self.known, before.joined, before.fresh, PADDED)
        for name, part in self.parts.items():
            self._written_by_rows(r, name, part, variable, trips)
        self.parts = {}
        for kept in self.stored.values():
            kept.update({w: left_of(e, variable) for w, e in kept.items() if e is not None})
        for name, extents in self.known.items():
            self.known[name] = left_of(extents, variable)
        if not trips:
            self._left_at_once(r, before)
        looked = [(name, axis, span) for name, span in self.looked.items() for axis in (0, 1)]
        for name, axis, span in (*looked, *((*at, span) for at, span in self.late.items() if at[0] in self.moved)):
            if self._extent(name, axis, self.known) != self._extent(name, axis, before.known):
                what = f"how much of {name} exists differs from trip to trip: it is loaded behind this, up to a tensor's end"
                raise TileError(what, span, help=PADDED)
        self.looked = before.looked | {name: span for name, span in self.looked.items() if name not in before.fresh}
        self.late = before.late | {at: span for at, span in self.late.items() if at[0] not in before.fresh}
        self.fresh |= before.fresh
        self.moved |= before.moved

    def _left_at_once(self, r: Buffers, before: Trips) -> None:
        """A loop was left that may have had no trip: of what it wrote over as much exists as before, or as it left."""
        for name in before.filled & {*self.known, *before.known}:
            full = tuple(map(ix.const, shape_of(r, Tile(name))))
            old, new = before.known.get(name, full), self.known.get(name, full)
            if old != new:
                self.known[name] = old[0] if old[0] == new[0] else None, old[1] if old[1] == new[1] else None

    def _extent(self, name: str, axis: int, known: Mapping[str, Extents]) -> Extent | str:
        return known[name][axis] if name in known else "all"

    def _written_by_rows(self, r: Buffers, name: str, part: Part, variable: str, trips: int) -> None:
        """What exists of a buffer of which each trip of a loop wrote a row: as much of each along it."""
        rows, cols = shape_of(r, Tile(name))
        along = part.extents[1]
        each = (part.row, part.col.value, part.rows, part.cols) == (ix.var(variable), 0, 1, cols)
        if name in self.known and each and trips == rows and along is not None and variable not in ix.variables(along):
            self.known[name] = None, along

    def of(self, r: Buffers, x: Place, across: bool, span: Span, some: bool = True) -> Place:
        """The window with what exists of it along the axis that is reduced. TileError where that is not followed, and where it
        may be nothing if it has to be `some`."""
        name = x.tile().buffer
        if name not in self.fresh:
            self.looked.setdefault(name, span)
        if name not in self.known:
            return x
        if (part := self.parts.get(name)) is not None and part.is_at(x.tile(), x.count) and part.cols == x.cols:
            return self._of_part(r, x, part.extents[1 if across else 0], across, span, some)
        extents, full = self.known[name], shape_of(r, x.tile())
        extent, size = (extents[1], full[1]) if across else (extents[0], full[0])
        if extent is not None and extent.value == size:
            return x
        at = x.tile().col if across else x.tile().row
        unfit = at.value != 0 or (x.cols if across else x.rows) != size
        if extent is None or unfit or (some and ix.bounds(extent, r.ranges)[0] < 1):
            raise not_followed(name, span)
        return replace(x, valid_cols=extent) if across else replace(x, valid_rows=extent)

    def _of_part(self, r: Buffers, x: Place, extent: Extent, across: bool, span: Span, some: bool) -> Place:
        if extent is not None and extent.value == (x.cols if across else x.rows):
            return x
        if extent is None or (some and ix.bounds(extent, r.ranges)[0] < 1):
            raise not_followed(x.tile().buffer, span)
        return replace(x, valid_cols=extent) if across else replace(x, valid_rows=extent)


def _is_fixed(t: Tile) -> bool:
    """Whether a window begins at one place as long as loops do not go on."""
    return not (elements_in(t.row) or elements_in(t.col))


def not_followed(name: str, span: Span | None) -> TileError:
    what = f"how much of {name} exists is not followed so far: a tensor's end cuts off what it was made of"
    return TileError(what, span, help=PADDED)
