"""Stored values that depend on their place in the tensor, and not on where the block's window begins.

Blocks whose windows overlap store equal values then: as where the last block begins earlier, so that its tile is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tile_eg.frontend.checks.alike import in_context, parts_of_block
from tile_eg.frontend.liveness import Liveness, assigned
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in, elements_in
from tile_eg.ir.seen import indexed

MOST_SHIFTS = 4
"""Places at which one buffer is looked at."""
At = Expr | None
"""The index in the tensor at which a buffer's element 0 along an axis is stored; None where it does not matter."""


class Moves(Exception):
    """A value that may depend on where the window begins."""


def made_of_moved(kernel: kn.Kernel, store: kn.Assign) -> frozenset[Expr] | None:
    """The parts of the block's index that a stored value depends on beside its place in the tensor; None where that cannot be
    told."""
    grid = {name for name, _ in kernel.grid}
    dims = tuple(s if ix.variables(s) & grid else None for s in store.target.starts)
    found = _Moved(kernel, frozenset(v for at in dims if at is not None for v in ix.variables(at)))
    points = tuple(at for at, n in zip(dims, store.target.extents, strict=True) if n is None and at is not None)
    try:
        for condition in next(context for s, context in found.statements if s is store):
            found.condition(condition, points)
        found.store(store, dims)
    except Moves:
        return None
    return parts_of_block(kernel, found.left)


@dataclass
class _Moved:
    """`moving` are the variables that move the window: two blocks that store at one place may differ in them. `left` gathers the
    indices that the value depends on beside its place."""

    kernel: kn.Kernel
    moving: frozenset[str]
    left: set[Expr] = field(default_factory=set)
    seen: set[tuple[str, tuple[At, ...]]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.grid = {name for name, _ in self.kernel.grid}
        self.tensors = {t.name: indexed(t) for t in self.kernel.tensors}
        self.statements = list(in_context(self.kernel.body, ()))
        self.shapes = {s.name: s.shape for s in kn.allocs(self.kernel.body)}
        self.trips = {s.var: s.extent for s in kn.statements(self.kernel.body) if isinstance(s, kn.For) and s.start == 0}
        for s in kn.statements(self.kernel.body):
            if isinstance(s, kn.Parallel):
                self.trips |= dict(zip(s.vars, s.extents, strict=True))
        self.carried = frozenset(name for s in kn.statements(self.kernel.body) for name in self.carried_by(s))

    def carried_by(self, s: kn.Stmt) -> Iterable[str]:
        """The buffers that hand values from trip to trip of a loop along which the window moves."""
        if isinstance(s, kn.For) and s.var in self.moving:
            return Liveness(self.shapes).before(s.body, frozenset()) & assigned(s.body)
        if isinstance(s, kn.Parallel) and (own := self.moving & {*s.vars}):
            return [a.target.name for a in kn.assigns(s.body) if not own & _own(a.target.starts)]
        return ()

    def store(self, s: kn.Assign, dims: tuple[At, ...]) -> None:
        """An assignment. `dims` says of each dimension of its target where element 0 of the window is stored in the tensor."""
        _plain(s.target)
        pairs = list(zip(dims, s.target.extents, strict=True))
        axes = tuple(at for at, extent in pairs if extent is not None)
        self.value(s.value, axes, tuple(at for at, extent in pairs if extent is None and at is not None))

    def value(self, e: kn.TileExpr, axes: tuple[At, ...], points: tuple[Expr, ...]) -> None:
        """A value whose axes lie at `axes`; single elements lie at `points`."""
        match e:
            case kn.Number():
                return
            case kn.Index():
                self.index(e.value, points)
            case kn.Region():
                self.region(e, axes, points)
            case kn.Unary() | kn.Cast():
                self.value(e.x, axes, points)
            case kn.Binary():
                self.all((e.x, e.y), axes, points)
            case kn.Broadcast():
                self.value(e.x, (axes[1 - e.axis],), points)
            case kn.Reduce() if len(axes) == 1:
                self.value(e.x, (axes[0], None) if e.axis == 1 else (None, axes[0]), points)
            case kn.MatMul() if len(axes) == 2:
                self.value(e.a, (None, axes[0]) if e.transpose_a else (axes[0], None), points)
                self.value(e.b, (axes[1], None) if e.transpose_b else (None, axes[1]), points)
            case kn.Scaled() if len(axes) == 2 and axes[1] is None:
                self.value(e.x, axes, points)
                self.value(e.scale, axes, points)
            case kn.Select():
                self.condition(e.condition, points)
                self.all((e.x, e.y), axes, points)
            case kn.Choose() if e.op != kn.BIT:
                self.all((e.a, e.b, e.x, e.y), axes, points)
            case _:
                raise Moves

    def all(self, values: Iterable[kn.TileExpr], axes: tuple[At, ...], points: tuple[Expr, ...]) -> None:
        for x in values:
            self.value(x, axes, points)

    def region(self, r: kn.Region, axes: tuple[At, ...], points: tuple[Expr, ...]) -> None:
        _plain(r)
        windows = iter(axes)
        dims = tuple(self.point(s, points) if n is None else self.window(s, next(windows)) for s, n in self._dims(r, axes))
        if r.name in self.tensors:
            if self.tensors[r.name].output:
                raise Moves
            for start, extent, at in zip(r.starts, r.extents, dims, strict=True):
                self.reads(ix.ZERO if at is None else at)
                apart = at is not None and ix.variables(at) & (self.grid | self.moving)
                if apart and extent is not None:
                    raise Moves  # its elements lie elsewhere than they are stored, and not by one number in all blocks
                if apart or at is None:
                    self.otherwise(start, points)
        elif r.name in self.carried:
            raise Moves  # a place is reached in one trip in one block and in another trip in another
        elif (r.name, dims) not in self.seen:
            self.seen.add((r.name, dims))
            if sum(name == r.name for name, _ in self.seen) > MOST_SHIFTS:
                raise Moves  # what goes on from element to element begins where the window begins
            for start, at in zip(r.starts, dims, strict=True):
                if at is None:
                    self.otherwise(start, points)
            self.buffer(r.name, dims)

    def _dims(self, r: kn.Region, axes: tuple[At, ...]) -> Iterator[tuple[Expr, int | None]]:
        if sum(n is not None for n in r.extents) != len(axes):
            raise Moves
        return zip(r.starts, r.extents, strict=True)

    def window(self, start: Expr, at: At) -> At:
        """Where the element of index 0 is stored of a dimension of which a window begins at `start`."""
        return None if at is None else at - start

    def point(self, start: Expr, points: tuple[Expr, ...]) -> At:
        """The same for a single index, where one of the points goes with it one by one."""
        own = _own(points) - self.grid
        behind = (p - start for p in points if ix.variables(p) & own & ix.variables(start) or not own)
        return next((b for b in behind if not ix.variables(b) & own and not elements_in(b)), None)

    def buffer(self, name: str, dims: tuple[At, ...]) -> None:
        """All that is assigned to a buffer whose dimensions lie so."""
        for s, context in self.statements:
            if s.target.name != name:
                continue
            if any(at is not None and not self.is_whole(s.target, k) for k, at in enumerate(dims)):
                raise Moves  # what stands beside it is elsewhere in another block
            starts = tuple(None if at is None else at + t for at, t in zip(dims, s.target.starts, strict=True))
            own = tuple(p for p, n in zip(starts, s.target.extents, strict=True) if p is not None and n is None)
            for e in context:
                self.condition(e, own)
            self.store(s, starts)

    def is_whole(self, r: kn.Region, k: int) -> bool:
        """Whether a buffer is written along all of a dimension."""
        size, start = self.shapes[r.name][k], r.starts[k]
        if r.extents[k] is not None:
            return start.value == 0 and r.extents[k] == size
        return size == 1 or (start.op == "var" and self.trips.get(start.args[0]) == size)

    def index(self, e: Expr, points: tuple[Expr, ...]) -> None:
        """An index, as a number or of an element: it says where the element is stored, or it has nothing to do with that."""
        varying = self.grid | self.moving | _own(points)
        if all(ix.variables(d) & varying or elements_in(d) for p in points for d in (e - p, e + p)):
            self.otherwise(e, points)

    def condition(self, c: Expr, points: tuple[Expr, ...]) -> None:
        if c.op == "and" or (c.op == "lt" and c.args[0].op in ("lt", "and")):
            for part in c.args:
                self.condition(part, points)
        elif c.op == "lt":
            self.index(c.args[0] - c.args[1], points)
        else:
            self.otherwise(c, points)

    def otherwise(self, e: Expr, points: tuple[Expr, ...]) -> None:
        if ix.variables(e) & (_own(points) | self.moving) - self.grid:
            raise Moves
        self.left.add(e)
        self.reads(e)

    def reads(self, e: Expr) -> None:
        """Moves where an index is made of elements of buffers, or of what the kernel writes."""
        written = {name for name, t in self.tensors.items() if t.output}
        names = {r.args[0] for r in all_elements_in(e)}
        if names - self.tensors.keys() or names & written:
            raise Moves


def _own(points: Iterable[Expr]) -> frozenset[str]:
    return frozenset(v for p in points for v in ix.variables(p))


def _plain(r: kn.Region) -> None:
    if r.step != 1 or r.beside or any(c is not None for c in r.counts):
        raise Moves
