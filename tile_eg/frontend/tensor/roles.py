"""Which axes of an expression are rows and columns of tiles, which are the grid's, and which sizes of tiles are open.

A tile has two axes at most. Products say what theirs are: rows of the left operand, columns of the right one, and what is summed.
So do tensors, whose rows lie side by side in memory. All other axes take one index at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tile_eg.errors import Span, TileError
from tile_eg.frontend.tensor.algebra import axes_of
from tile_eg.frontend.tensor.indices import Axis, Indices, diagonal, divided, loadable, reads
from tile_eg.frontend.tensor.points import Point, goes_across
from tile_eg.frontend.tensor.steps import can_step, in_turns, stepped
from tile_eg.ir.kernel import Tensor
from tile_eg.ops.records import record

WHOLE = 512
"""The longest axis that tiles of a nested product hold whole: that of the largest size of tiles which the search tries."""

DEEP = 576
"""The longest depth of a nested product that tiles hold whole, as its operands lie in L1: that of a key of latent attention."""

ROW = 4096
"""The longest row of whole numbers that is reduced in one tile, which is filled up to a power of two and halved: assumed."""


@record
class Output:
    """What an element of an output is, at these indices."""

    tensor: Tensor
    at: Indices
    value: Point


@dataclass
class Roles:
    """`tiled` are the axes of tiles; of these `whole` ones lie in a tile with their whole extent, `exact` ones in tiles that part
    them without a rest, and `open` names the size of the tiles of the others. `outer` are the grid's axes, rows first.
    """

    outputs: Sequence[Output]
    points: Sequence[Point]
    shapes: dict[str, tuple[int, ...]]
    tiled: list[Axis] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._of_products()
        self._of_memory()
        self._of_scans()
        self._of_rows()
        self._of_folds()
        for p in self.points:
            if p.op == "position" and p.args[0].elements:
                if not any(reads(p.args)):
                    raise goes_across(p.span)
                help = "make what the mask chooses an output of a kernel, and an input of another, or compare the index itself"
                raise TileError("a position is gathered here: it is the index itself", p.span, help=help)
            if len(p.axes & set(self.tiled)) > 2 and p.op != "compare":
                raise three_dimensions(p)
        for o in self.outputs:
            if len(_stored(o).intersection(self.tiled)) > 2:
                raise three_dimensions(o.value)

    # ---- which axes are tiled ----

    @cached_property
    def dots(self) -> list[Point]:
        return [p for p in self.points if p.op == "dot"]

    @cached_property
    def folds(self) -> list[Point]:
        return [p for p in self.points if p.op in ("fold", "dot")]

    @cached_property
    def folded(self) -> set[Axis]:
        return {a for p in self.folds for a in axes_of(p)}

    @cached_property
    def scans(self) -> list[Point]:
        return [p for p in self.points if p.op == "scan"]

    @cached_property
    def scanned(self) -> set[Axis]:
        """The axes that running sums go along, whose tiles come in their order."""
        return {p.args[1] for p in self.scans}

    @cached_property
    def repeated(self) -> set[Axis]:
        """The axes along which products are repeated."""
        return {a for p in self.dots for a in (p.of[0].axes & p.of[1].axes) - set(p.args)}

    def _tile(self, axis: Axis | None) -> None:
        if axis is not None and axis not in self.tiled:
            self.tiled.append(axis)

    def _of_products(self) -> None:
        apart = {a for p in self.dots for x in p.of for a in self._rows_apart(x, p.args[-1])}
        for p in self.dots:
            a, b = p.of
            self._tile(self._largest(a.axes - b.axes - apart - {*p.args}, p.args[-1:]))
            self._tile(self._largest(b.axes - a.axes - apart - {*p.args}, p.args[-1:]))
            self._tile(p.args[-1])

    def _rows_apart(self, x: Point, depth: Axis) -> Iterator[Axis]:
        """The rows of an operand that is folded along what lies innermost in a tensor which has its rows and its depth as well:
        tiles would have three dimensions, so that rows are taken one by one."""
        for p in (f for f in _folds_of(x) if f.op == "fold"):
            for i in (y.args[1] for y in below(p) if y.op == "load" and depth in y.axes):
                yield from (x.axes & p.axes) - {depth} if {*i[-1].axes} & {*axes_of(p)} else ()

    def _largest(self, axes: Iterable[Axis], beside: Sequence[Axis] = ()) -> Axis | None:
        """The axis to tile, beside others: one that is tiled already, else the longest, the innermost of those."""
        able = [a for a in self.in_order(axes) if a not in self.repeated and self._side_by_side(a) and self._alone(a, beside)]
        return max(able, key=lambda a: (a in self.tiled, a.extent), default=None)

    def _alone(self, axis: Axis, beside: Sequence[Axis] = ()) -> bool:
        """Whether no dimension of a tensor has the axis and another one of tiles."""
        together = {axis, *self.tiled, *beside}
        return all(len(together.intersection(d.strides)) < 2 for i in self._indices for d in i if axis in d.strides)

    def in_order(self, axes: Iterable[Axis]) -> list[Axis]:
        """The axes as they first come in the indices of tensors, innermost first."""
        known = [a for i in self._indices for d in reversed(i) for a in reversed(d.every)]
        return sorted(axes, key=lambda a: (known.index(a) if a in known else len(known), a.serial))

    @cached_property
    def _indices(self) -> list[Indices]:
        return [*(o.at for o in self.outputs), *(p.args[1] for p in self.points if p.op == "load")]

    def _side_by_side(self, axis: Axis) -> bool:
        """Whether the axis goes from one index of a dimension to the next, in every tensor that has it, or in steps that tiles
        take where no product has it."""
        outputs = [n for n, o in enumerate(self.outputs) if stepped(o.at, {axis})]
        loads = [p.args[1] for p in self.points if p.op == "load" and stepped(p.args[1], {axis})]
        if outputs and any(axis in p.axes or axis in p.args for p in self.dots):
            return False
        return all(self._in_turns(n, axis) for n in outputs) and all(can_step(at, axis) for at in loads)

    def _in_turns(self, output: int, axis: Axis) -> bool:
        """Whether an output and another one are stored as one, whose elements take turns along the axis."""
        at = self.outputs[output].at
        along = at[-1].strides.get(axis) == 2 and not any(axis in d.strides for d in at[:-1])
        return along and any(output in pair for pair in self.turns.items())

    @cached_property
    def turns(self) -> dict[int, int]:
        """Outputs whose elements take turns with those of another one."""
        return in_turns([(o.tensor, o.at) for o in self.outputs])

    def _of_memory(self) -> None:
        """Rows of tensors lie along columns of tiles, where products leave room for that."""
        for i in self._indices:
            last = [a for a, s in i[-1].strides.items() if s == 1]
            if last and self._side_by_side(last[0]) and self._room(last[0]) and self._pairs(last[0]):
                self._tile(last[0])

    def _room(self, axis: Axis) -> bool:
        having = [p for p in self.points if axis in p.axes and p.op != "compare"]
        able = all(p.op != "load" or loadable(p.args[1], {axis, *self.tiled}) for p in having)
        together = [*(p.axes for p in having), *(at for o in self.outputs if axis in (at := _stored(o)))]
        able = able and self._alone(axis) and axis not in self.repeated
        return able and all(len({axis, *axes.intersection(self.tiled)}) <= 2 for axes in together)

    def _pairs(self, axis: Axis) -> bool:
        """Whether no tensor has the axis and a tiled one with others inside of both: its tiles would have their columns apart."""
        for shape, at in self._tensors():
            tiled = [n for n, d in enumerate(at) if {axis, *self.tiled}.intersection(d.every)]
            both = any(axis in d.every for d in at) and len(tiled) > 1
            if both and any(n != 1 for n in shape[tiled[-1] + 1 :]):
                return False
        return True

    def _of_rows(self) -> None:
        for o in self.outputs:
            free = [a for d in o.at for a in d.axes if a not in self.tiled and self._room(a) and self._pairs(a)]
            if len(_stored(o).intersection(self.tiled)) < 2 and free:
                self._tile(self._largest(free))

    def _of_scans(self) -> None:
        for a in sorted(self.scanned, key=lambda a: a.serial):
            if self._side_by_side(a) and self._room(a) and self._pairs(a):
                self._tile(a)

    def _of_folds(self) -> None:
        for p in self.folds:
            for a in reversed(axes_of(p)):
                if a not in self.tiled and self._side_by_side(a) and self._room(a) and self._pairs(a):
                    self._tile(a)

    def apart(self, name: str, at: Indices, axis: Axis) -> bool:
        """Whether the elements along an axis of a tensor do not lie side by side."""
        inner = [n for n, d in enumerate(at) if axis in d.axes][-1] + 1
        return any(n != 1 for n in self.shapes[name][inner:])

    # ---- how large their tiles are ----

    @cached_property
    def exact(self) -> set[Axis]:
        """The axes beyond whose end a tensor goes on, or where nothing is loaded that would end."""
        loads = {a for _, i in self._tensors() for d in i for a in d.axes}
        out = {a for a in self.tiled if a not in loads}
        out |= {a for _, at in self._tensors() for d in divided(at) for a in d.axes if a in self.tiled}
        out |= {a for _, at in self._tensors() for a in diagonal(at) if a in self.tiled}
        zeros = {d for p in self.points if p.op == "load" and len(p.args) > 2 for d in p.args[1]}
        for shape, indices in self._tensors():
            for n, i in zip(shape, indices, strict=True):
                alone = i in zeros or (len(i.terms) == 1 and i.most + 1 == n)
                out |= set() if alone else {a for a in i.axes if a in self.tiled}
        return out

    def _tensors(self) -> Iterator[tuple[tuple[int, ...], Indices]]:
        yield from ((self.shapes[o.tensor.name], o.at) for o in self.outputs)
        loads = [(p.args[0], p.args[1]) for p in self.points if p.op == "load"]
        yield from ((self.shapes[name], at) for name, at in loads)
        yield from ((self.shapes[str(e.by)], e.of) for _, at in loads for e in reads(at))

    @cached_property
    def outer(self) -> list[Axis]:
        """The grid's axes: of an output, and no reduction's or scan's on the way; rows first, then columns, then single ones."""
        every = [set().union(*(d.axes for d in o.at)) for o in self.outputs]
        shared = set.intersection(*every) if every else set()
        order = self.in_order(shared - self.folded - self.scanned)
        tiles = [a for a in order if a in self.tiled]
        return [*reversed(tiles), *(a for a in order if a not in self.tiled)]

    @cached_property
    def whole(self) -> set[Axis]:
        """The axes that lie in tiles whole: rows that vector cores reduce or share, and the short ones of nested products."""
        out = set()
        for a in self.tiled:
            if self.dots:
                inner = self._inner(a) and a.extent <= DEEP
                beside = self._beside(a) and a not in self.folded and a.extent <= WHOLE
                out |= {a} if a.extent > 1 and (inner or beside) else set()
            elif a not in self.outer and self._along_rows(a) and not (a.extent > ROW and a in self._counted | self.scanned):
                out.add(a)
        return out | self._of_one_tile(out)

    def _of_one_tile(self, whole: set[Axis]) -> set[Axis]:
        """The axes beside those of running sums over several tiles, as a sum is kept of each row of one tile; those of
        running products, and of sums in a loop over other axes.
        """
        inside = {p for p in self.scans if p.axes - {*self.outer, *self.tiled}}
        out = {p.args[1] for p in self.scans if p in inside or p.args[0] != "cumsum"}
        for p in self.scans:
            if p.args[1] not in whole | out:
                out |= {a for a in p.axes & set(self.tiled) if a is not p.args[1] and a not in self.outer}
        return out & set(self.tiled)

    @cached_property
    def _counted(self) -> set[Axis]:
        """The axes along which whole numbers are reduced: no column tiles part these later."""
        return {a for p in self.folds if p.dtype is not None and p.dtype.whole for a in axes_of(p)}

    def _inner(self, axis: Axis) -> bool:
        """Whether an axis is summed within a product of another one."""
        pairs = ((p, f) for p in self.folds for x in p.of for f in _folds_of(x))
        return any(axis in axes_of(f) and f.axes & set(axes_of(p)) for p, f in pairs)

    def _beside(self, axis: Axis) -> bool:
        """Whether a fold is needed that has not this axis of the grid, and would be done again for each of its tiles."""
        return any(axis not in p.axes and axis not in axes_of(p) for p in self.folds)

    def _along_rows(self, axis: Axis) -> bool:
        """Whether an axis runs along the rows of the tensors that have it."""
        having = [i for i in self._indices if any(axis in d.every for d in i)]
        return all(axis in i[-1].axes or not any(axis in d.every for d in i[:-1]) for i in having)

    @cached_property
    def open(self) -> dict[Axis, str]:
        """The sizes that the search finds, by axis."""
        names: dict[Axis, str] = {}
        rows = [a for a in self.outer if a in self.tiled]
        for a in [*rows, *(a for a in self.tiled if a not in rows)]:
            if a in self.whole:
                continue
            base = ("BM", "BN")[rows.index(a)] if a in rows and len(rows) > 1 else "BM" if a in rows else "BK"
            names[a] = base if base not in names.values() else f"{base}_{sum(n.startswith(base) for n in names.values())}"
        return names


def _stored(o: Output) -> frozenset[Axis]:
    """The axes along which an output lies, those along which its value is repeated among them."""
    return frozenset(a for d in o.at for a in d.axes)


def _folds_of(p: Point) -> Iterator[Point]:
    return (x for x in below(p) if x.op in ("fold", "dot"))


def below(p: Point) -> Iterator[Point]:
    """A point and all that it is made of."""
    stack, seen = [p], set()
    while stack:
        x = stack.pop()
        if x not in seen:
            seen.add(x)
            stack += x.of
            yield x


def three_dimensions(p: Point) -> TileError:
    help = "write the kernel with its tiles: `with T.Kernel(...)`, or a grid and buffers in `.tile`"
    return TileError("this would take tiles of three dimensions", p.span, help=help)


def strided(span: Span | None) -> TileError:
    help = "reshape or transpose the array before the call"
    return TileError("this would take tiles whose rows or columns do not lie side by side in a tensor", span, help=help)
