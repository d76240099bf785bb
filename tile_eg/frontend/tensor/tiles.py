"""Statements in their scopes, and the buffers that they fill."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.narrow_positions import with_words
from tile_eg.frontend.tensor.algebra import Algebra
from tile_eg.frontend.tensor.indices import Axis, Indices
from tile_eg.frontend.tensor.layout import Layout, Layouts
from tile_eg.frontend.tensor.places import Places
from tile_eg.frontend.tensor.points import Point
from tile_eg.frontend.tensor.reach import live_trips
from tile_eg.frontend.tensor.roles import Output, Roles, strided, three_dimensions
from tile_eg.frontend.whole_quotients import divided
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import F32, I32, DType


@dataclass(eq=False)
class Scope:
    """The statements of a block, or of a loop's body. `axes` and `folds` are what is bound, or still runs, in it alone; `order`
    are the axes by their loops, the innermost last, and `before` the statements in front of that one.
    """

    outside: Scope | None = None
    axes: frozenset[Axis] = frozenset()
    folds: frozenset[Point] = frozenset()
    roots: tuple[Point, ...] = ()
    order: tuple[Axis, ...] = ()
    before: list[kn.Stmt] = field(default_factory=list)
    statements: list[kn.Stmt] = field(default_factory=list)
    made: dict[tuple[Point, Layout], kn.Region] = field(default_factory=dict)


class Tiles(Places, ABC):
    """Collects the statements of one kernel; `allocs` are its buffers by name."""

    def __init__(self, roles: Roles, algebra: Algebra, sizes: Mapping[str, int], names: set[str]) -> None:
        super().__init__(roles, algebra, sizes, names)
        self.layouts = Layouts(roles)
        self.scope = Scope(roots=tuple(o.value for o in roles.outputs))
        self.allocs: dict[str, kn.Alloc] = {}

    @abstractmethod
    def expression(self, p: Point, layout: Layout) -> kn.TileExpr:
        """A point on the tile of a layout, repeated along axes that it has not."""

    @abstractmethod
    def region(self, p: Point, layout: Layout) -> kn.Region:
        """A buffer that holds a point's tile, filled where that can be done first."""

    @abstractmethod
    def stored(self, o: Output, layout: Layout) -> kn.TileExpr:
        """What an output holds on a tile."""

    @abstractmethod
    def spread(self, p: Point, layout: Layout) -> kn.Region:
        """One number as a vector."""

    def quotient(self, p: Point, x: kn.TileExpr, y: kn.TileExpr) -> kn.TileExpr:
        """x // y or x % y; a position beside floats is one."""
        of = F32 if p.dtype is not None and not p.dtype.whole else I32
        x, y = (kn.Cast(of, e, e.span) if isinstance(e, kn.Index) else e for e in (x, y))
        assert p.span is not None
        return divided(p.args[0], x, y, lambda name: self.allocs[name].dtype, p.span)

    # ---- scopes ----

    def emit(self, s: kn.Stmt) -> None:
        self.scope.statements.append(self._with_words(s))

    def _with_words(self, s: Any) -> Any:
        """The statement in which a position beside whole numbers of 32 bits is one of them."""
        match s:
            case kn.Parallel():
                return replace(s, body=tuple(map(self._with_words, s.body)))
            case kn.Assign():
                return replace(s, value=with_words(s.value, lambda n: self.allocs[n].dtype if n in self.allocs else None))
        return s

    @contextmanager
    def loops(
        self, axes: tuple[Axis, ...], folds: frozenset[Point], roots: tuple[Point, ...], masked: bool = True
    ) -> Iterator[None]:
        """Statements for each tile of some axes; where `masked`, for those alone in which some of the folds change."""
        if not axes:
            yield
            return
        axes = tuple(sorted(axes, key=self.roles.scanned.__contains__))
        outside, starts = self.scope, {a: self.at.get(a) for a in axes}
        span = next((p.span for p in roots if p.span), None)
        heads = []
        for n, a in enumerate(axes):
            last = n == len(axes) - 1
            name = self.unique("j" if a in self.tile else "n")
            parted = masked and last and len(axes) == 1
            start, extent, count = live_trips(self, a, folds) if parted else (ix.ZERO, self.trips(a), None)
            first = start.value if start.value is not None else 0
            self.at[a] = (ix.var(name) + (start - first)) * self.tile.get(a, 1)
            heads.append((name, first, extent, count, "pipelined" if last and a in self.tile else "serial"))
        self.scope = Scope(outside, frozenset(axes), folds, roots, axes)
        yield
        body, in_front = self.scope.statements, self.scope.before
        for name, first, extent, count, kind in reversed(heads):
            body, in_front = [*in_front, kn.For(name, first, extent, kind, 0, tuple(body), span, count)], []
        self.scope = outside
        self.scope.statements += body
        for a, before in starts.items():
            if before is None:
                del self.at[a]
            else:
                self.at[a] = before

    def bound(self, p: Point) -> bool:
        """Whether a point's axes have places by now."""
        inside, scope = set(self.roles.outer), self.scope
        while scope.outside is not None:
            inside |= scope.axes
            scope = scope.outside
        return all(a in inside or self.trips(a) == 1 for a in p.axes)

    def home(self, p: Point) -> Scope:
        """The outermost scope in which a point can be computed."""
        scope, folds = self.scope, self.points.folds(p)
        while scope.outside is not None and not (p.axes & scope.axes or folds & scope.folds):
            scope = scope.outside
        return scope

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        before, self.scope = self.scope, scope
        yield
        self.scope = before

    # ---- buffers ----

    def buffer(self, name: str, dtype: DType, layout: Layout, scope: str = "fragment", span: Span | None = None) -> kn.Region:
        return self.new(name, scope, dtype, tuple(self.tile[a] for a in layout) or (1,), span)

    def new(self, name: str, scope: str, dtype: DType, shape: tuple[int, ...], span: Span | None) -> kn.Region:
        """A buffer of any shape."""
        name = self.unique(name)
        self.allocs[name] = kn.Alloc(name, scope, dtype, shape, span)
        return kn.Region(name, (ix.ZERO,) * len(shape), shape, span)

    def row(self, p: Point, layout: Layout, turned: bool = False, scope: str = "fragment") -> kn.Region:
        """A buffer of one row, or turned, of one column."""
        name, shape = self.unique("t"), (1, self.tile[layout[0]])[:: -1 if turned else 1]
        self.allocs[name] = kn.Alloc(name, scope, p.dtype or F32, shape, p.span)
        return kn.Region(name, (ix.ZERO, ix.ZERO), shape, p.span)

    def repeated(self, number: kn.Region, p: Point, layout: Layout) -> kn.Region:
        """One number as a vector of the type of a point: a tile of one row that it fills, whose columns have a sum each."""
        row, out = self.row(p, layout), self.buffer("t", p.dtype or F32, layout, span=p.span)
        self.emit(kn.Assign(row, kn.Broadcast(number, 1, p.span), p.span))
        self.emit(kn.Assign(out, kn.Reduce("sum", row, 0, p.span), p.span))
        return out

    def window(self, name: str, at: Indices, layout: Layout, span: Span | None) -> kn.Region:
        """The part of a tensor that a tile is."""
        starts, extents = [], []
        for d in at:
            tiles = [a for a in d.axes if a in layout]
            if len(tiles) > 1:
                raise three_dimensions(Point("load", (), (), frozenset(), None, None, span))
            if any(s != 1 and self.tile[a] > 1 for a, s in d.terms if a in tiles):
                raise strided(span)
            starts.append(self.place(d))
            extents.append(self.tile[tiles[0]] if tiles else None)
        tiled = [n for n, e in enumerate(extents) if e]
        if len(tiled) > 1 and any(n != 1 for n in self.roles.shapes[name][tiled[-1] + 1 :]):
            raise strided(span)
        if not tiled:
            extents[-1] = 1
        return kn.Region(name, tuple(starts), tuple(extents), span)


def held(p: Point, part: kn.Region) -> kn.TileExpr:
    """What a load holds of a part of its tensor, zeros beyond it where elements may lie there."""
    return kn.Pad(part, 0.0, p.span) if len(p.args) > 2 else part


def one_column(window: kn.Region) -> kn.Region:
    """A vector of a tensor as a tile of one column."""
    return kn.Region(window.name, window.starts, (*window.extents[:-1], 1), window.span)
