"""The kernel tree of an expression at one set of tile sizes: a grid over the outputs, loops over what is reduced.

A fold whose axis does not lie in one tile is a loop; folds over the same axis that do not wait for each other share it, and sums
of exponentials less a maximum run along with that maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tile_eg.errors import Span, TileError
from tile_eg.frontend.tensor.algebra import Algebra, axes_of
from tile_eg.frontend.tensor.elements import Elements, takes_elements
from tile_eg.frontend.tensor.layout import Layouts
from tile_eg.frontend.tensor.points import Affine, Axis, Indices, Point
from tile_eg.frontend.tensor.reach import live_trips
from tile_eg.frontend.tensor.roles import Roles, three_dimensions
from tile_eg.frontend.tensor.waits import Waits
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import F32, I8, I32, DType

LOWEST = -3.4028234663852886e38
"""What a running maximum begins with: two infinities have no difference."""
FOLDS = {"sum": "add", "max": "max", "min": "min"}
START = {"sum": 0.0, "max": float("-inf"), "min": float("inf")}
Layout = tuple[Axis, ...]


@dataclass(eq=False)
class Scope:
    """The statements of a block, or of a loop's body. `axes` and `folds` are what is bound, or still runs, in it alone."""

    outside: Scope | None = None
    axes: frozenset[Axis] = frozenset()
    folds: frozenset[Point] = frozenset()
    roots: tuple[Point, ...] = ()
    statements: list[kn.Stmt] = field(default_factory=list)
    made: dict[tuple[Point, Layout], kn.Region] = field(default_factory=dict)


class Build:
    """One kernel. `sizes` are those of the open axes, `names` the names that are taken."""

    def __init__(self, roles: Roles, algebra: Algebra, sizes: Mapping[str, int], names: set[str]) -> None:
        self.roles, self.algebra, self.points = roles, algebra, algebra.points
        self.taken = set(names)
        self.tile = {a: self._size(a, sizes) for a in roles.tiled}
        self.at: dict[Axis, ix.Expr] = {a: ix.ZERO for a in roles.tiled}
        self.layouts = Layouts(roles)
        self.grid = tuple(self._outer(a) for a in roles.outer)
        self.ranges = {name: (0, extent - 1) for name, extent in self.grid}
        self.scope = Scope(roots=tuple(o.value for o in roles.outputs))
        self.waits = Waits(self.looped, algebra)
        self.allocs: dict[str, kn.Alloc] = {}

    def _size(self, axis: Axis, sizes: Mapping[str, int]) -> int:
        if axis in self.roles.whole:
            return axis.extent
        name = self.roles.open[axis]
        if axis not in self.roles.exact:
            return sizes[name]
        return max(n for n in range(1, min(sizes[name], axis.extent) + 1) if axis.extent % n == 0)

    def _outer(self, axis: Axis) -> tuple[str, int]:
        """A variable of the grid and its extent."""
        rows = [a for a in self.roles.outer if a in self.tile]
        name = self.unique(("bx", "by")[rows.index(axis)] if axis in rows else "b")
        self.at[axis] = ix.var(name) * self.tile.get(axis, 1)
        return name, -(-axis.extent // self.tile.get(axis, 1))

    def unique(self, name: str) -> str:
        found, n = name, 0
        while found in self.taken:
            n += 1
            found = f"{name}_{n}"
        self.taken.add(found)
        return found

    def looped(self, p: Point) -> tuple[Axis, ...]:
        """The axes of a fold that loops go over."""
        return tuple(a for a in axes_of(p) if self._trips(a) > 1)

    def _trips(self, a: Axis) -> int:
        return -(-a.extent // self.tile.get(a, 1))

    # ---- the kernel ----

    def statements(self) -> list[kn.Stmt]:
        inner: dict[tuple[Axis, ...], list[int]] = {}
        for n, o in enumerate(self.roles.outputs):
            axes = [a for d in o.at for a in d.axes if a not in self.roles.outer and self._trips(a) > 1]
            inner.setdefault(tuple(self.roles.in_order(axes)), []).append(n)
        for axes, outputs in inner.items():
            for n in outputs:
                self._prepare(self.roles.outputs[n].value, axes)
            with self.loops(axes, frozenset(), tuple(self.roles.outputs[n].value for n in outputs)):
                for n in outputs:
                    self._store(n)
        return self.scope.statements

    def _prepare(self, p: Point, axes: tuple[Axis, ...]) -> None:
        """Makes the folds that have to be over before a loop."""
        for f in self.points.folds(p) if axes else ():
            if self.looped(f) and not f.axes & set(axes):
                self.region(f, self.layouts.of(f))

    def _store(self, n: int) -> None:
        o = self.roles.outputs[n]
        layout = self.layouts.of_indices(o.at)
        region = self.window(o.tensor.name, o.at, layout, o.value.span or o.tensor.span)
        value = self.expression(o.value, layout)
        if o.tensor.dtype.whole and o.value.dtype not in (None, o.tensor.dtype):
            value = kn.Cast(o.tensor.dtype, value, o.value.span)
        if len(layout) == 1 and self.roles.apart(o.tensor.name, o.at, layout[0]):
            region, value = _one_column(region), kn.Broadcast(value, 1, o.value.span)
        self.emit(kn.Assign(region, value, o.value.span))

    def emit(self, s: kn.Stmt) -> None:
        self.scope.statements.append(s)

    @contextmanager
    def loops(self, axes: tuple[Axis, ...], folds: frozenset[Point], roots: tuple[Point, ...]) -> Iterator[None]:
        """Statements for each tile of some axes."""
        if not axes:
            yield
            return
        outside, starts = self.scope, {a: self.at.get(a) for a in axes}
        span = next((p.span for p in roots if p.span), None)
        heads = []
        for n, a in enumerate(axes):
            last = n == len(axes) - 1
            name = self.unique("k" if a in self.tile else "n")
            start, extent, count = live_trips(self, a, folds) if last and len(axes) == 1 else (ix.ZERO, self._trips(a), None)
            first = start.value if start.value is not None else 0
            self.at[a] = (ix.var(name) + (start - first)) * self.tile.get(a, 1)
            heads.append((name, first, extent, count, "pipelined" if last and a in self.tile else "serial"))
        self.scope = Scope(outside, frozenset(axes), folds, roots)
        yield
        body: list[kn.Stmt] = self.scope.statements
        for name, first, extent, count, kind in reversed(heads):
            body = [kn.For(name, first, extent, kind, 0, tuple(body), span, count)]
        self.scope = outside
        self.scope.statements += body
        for a, start in starts.items():
            if start is None:
                del self.at[a]
            else:
                self.at[a] = start

    # ---- buffers ----

    def bound(self, p: Point) -> bool:
        """Whether a point's axes have places by now."""
        inside, scope = set(self.roles.outer), self.scope
        while scope.outside is not None:
            inside |= scope.axes
            scope = scope.outside
        return all(a in inside or self._trips(a) == 1 for a in p.axes)

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

    def region(self, p: Point, layout: Layout) -> kn.Region:
        """A buffer that holds a point's tile, filled where that can be done first."""
        scope: Scope | None = self.scope
        while scope is not None:
            if (p, layout) in scope.made:
                return scope.made[p, layout]
            scope = scope.outside
        home = self.home(p)
        with self.inside(home):
            made = self._filled(p, layout)
        home.made.setdefault((p, layout), made)
        return made

    def buffer(self, name: str, dtype: DType, layout: Layout, scope: str = "fragment", span: Span | None = None) -> kn.Region:
        shape = tuple(self.tile[a] for a in layout) or (1,)
        name = self.unique(name)
        self.allocs[name] = kn.Alloc(name, scope, dtype, shape, span)
        return kn.Region(name, (ix.ZERO,) * len(shape), shape, span)

    def _filled(self, p: Point, layout: Layout) -> kn.Region:
        if p.op in ("fold", "dot") and self.looped(p):
            self._loop_of(p)
            return self.region(p, layout)
        if p.op == "load":
            return self._loaded(p, layout)
        if takes_elements(p, self.layouts.tiles):
            out = self.buffer("t", p.dtype or F32, layout, span=p.span)
            self.emit(Elements(self, layout).statement(p, out))
            return out
        name = {"dot": "c", "fold": "r"}.get(p.op, "t")
        out = self.buffer(name, p.dtype or F32, layout, span=p.span)
        value = self.part(p, layout) if p.op in ("fold", "dot") else self.computed(p, layout)
        self.emit(kn.Assign(out, value, p.span))
        return out

    def _loaded(self, p: Point, layout: Layout) -> kn.Region:
        name, dtype = p.args[0].lower(), p.dtype or F32
        window = self.window(p.args[0], p.args[1], layout, p.span)
        if len(layout) == 1 and self.roles.apart(*p.args, layout[0]):
            return self._column(p, window, layout)
        out = self.buffer(name, dtype, layout, "shared", p.span)
        self.emit(kn.Assign(out, window, p.span))
        return out

    def _column(self, p: Point, window: kn.Region, layout: Layout) -> kn.Region:
        """A vector whose elements do not lie side by side: a tile of one column, whose rows have a sum each."""
        column = self._row(p, layout, turned=True, scope="shared")
        self.emit(kn.Assign(column, _one_column(window), p.span))
        out = self.buffer("t", p.dtype or F32, layout, span=p.span)
        self.emit(kn.Assign(out, kn.Reduce("sum", column, 1, p.span), p.span))
        return out

    def window(self, name: str, at: Indices, layout: Layout, span: Span | None) -> kn.Region:
        """The part of a tensor that a tile is."""
        starts, extents = [], []
        for d in at:
            tiles = [a for a in d.axes if a in layout]
            if len(tiles) > 1:
                raise three_dimensions(Point("load", (), (), frozenset(), None, None, span))
            starts.append(self.place(d))
            extents.append(self.tile[tiles[0]] if tiles else None)
        if not any(extents):
            extents[-1] = 1
        return kn.Region(name, tuple(starts), tuple(extents), span)

    def place(self, d: Affine) -> ix.Expr:
        return sum((self.at[a] * s for a, s in d.terms), ix.const(d.offset))

    # ---- expressions ----

    def expression(self, p: Point, layout: Layout) -> kn.TileExpr:
        """A point on the tile of a layout, repeated along axes that it has not."""
        own = tuple(a for a in layout if a in p.axes)
        if p.op == "number":
            return kn.Number(float(p.args[0]), p.span)
        if p.op == "position" and not own:
            return kn.Index(self.place(p.args[0]), p.span)
        if not own and layout:
            row = self.spread(p, layout[-1:])
            return kn.Broadcast(row, 0, p.span) if len(layout) > 1 else row
        if own != layout:
            return kn.Broadcast(self.expression(p, own), 1 if own[0] is layout[0] else 0, p.span)
        if self.layouts.of(p) != layout and len(layout) == 2 and self.layouts.fixed(p):
            return self._transposed(p, layout)
        return self.region(p, layout) if self.kept(p) else self.computed(p, layout)

    def spread(self, p: Point, layout: Layout) -> kn.Region:
        """One number as a vector: a tile of one row that it fills, whose columns have a sum each."""
        home = self.home(p)
        if (p, layout) not in home.made:
            with self.inside(home):
                row = self._row(p, layout)
                self.emit(kn.Assign(row, kn.Broadcast(self.region(p, ()), 1, p.span), p.span))
                out = self.buffer("t", p.dtype or F32, layout, span=p.span)
                self.emit(kn.Assign(out, kn.Reduce("sum", row, 0, p.span), p.span))
            home.made[p, layout] = out
        return home.made[p, layout]

    def _row(self, p: Point, layout: Layout, turned: bool = False, scope: str = "fragment") -> kn.Region:
        """A buffer of one row, or turned, of one column."""
        name, shape = self.unique("t"), (1, self.tile[layout[0]])[:: -1 if turned else 1]
        self.allocs[name] = kn.Alloc(name, scope, p.dtype or F32, shape, p.span)
        return kn.Region(name, (ix.ZERO, ix.ZERO), shape, p.span)

    def _transposed(self, p: Point, layout: Layout) -> kn.TileExpr:
        reader = next((q for q in self.roles.points if p in q.of and q.span), p)
        help = "transpose the array before the call, or what is stored behind it"
        raise TileError("this would transpose a tile that is computed", reader.span, help=help)

    def kept(self, p: Point) -> bool:
        """Whether a point gets a buffer: what moves or folds tiles, and what several read."""
        if p.op in ("load", "fold", "dot") or takes_elements(p, self.layouts.tiles) or not p.axes & set(self.tile):
            return True
        return self.layouts.uses[p] > 1 and p.op != "cast"

    def computed(self, p: Point, layout: Layout) -> kn.TileExpr:
        x = [self.expression(o, layout) for o in p.of] if p.op != "where" else []
        match p.op:
            case "unary":
                return kn.Unary(p.args[0], x[0], p.span)
            case "binary":
                return kn.Binary(p.args[0], *self._floats(p, x), p.span)
            case "cast":
                assert p.dtype is not None
                return x[0] if p.of[0].dtype in (None, p.dtype) else kn.Cast(p.dtype, x[0], p.span)
            case "where":
                return Elements(self, layout, whole=True).value(p)
        raise AssertionError(p.op)

    def _floats(self, p: Point, x: list[kn.TileExpr]) -> list[kn.TileExpr]:
        """Operands of one type: whole numbers beside floats are cast."""
        mixed = p.dtype == F32
        return [kn.Cast(F32, e, o.span) if mixed and o.dtype and o.dtype.whole else e for o, e in zip(p.of, x, strict=True)]

    # ---- folds ----

    def part(self, p: Point, layout: Layout) -> kn.TileExpr:
        """A fold or a product over one tile of its axes."""
        if p.op == "dot":
            return self._product(p, layout)
        op, axes = p.args
        tiled = [a for a in axes if a in self.tile]
        (x,) = p.of
        if not tiled:
            return self.expression(x, layout)
        if len(tiled) + len(layout) > 2:
            raise three_dimensions(p)
        own = self.layouts.of(x)
        inner = tuple(a for a in own if a in layout or a in tiled)
        inner = (*inner, *(a for a in (*layout, *tiled) if a not in inner))
        if len(inner) == 1:
            return kn.Reduce(op, self._one_row(x, inner), 1, p.span)
        if len(tiled) == 2:
            first = self.points.fold(op, (inner[1],), x, p.rounds, p.span)
            return kn.Reduce(op, self._one_row(first, inner[:1]), 1, p.span)
        value = self.expression(x, inner)
        if _repeats(value):
            value = self._named(value, x, inner)
        return kn.Reduce(op, value, 1 if inner[1] in tiled else 0, p.span)

    def _named(self, value: kn.TileExpr, x: Point, layout: Layout) -> kn.Region:
        out = self.buffer("t", x.dtype or F32, layout, span=x.span)
        self.emit(kn.Assign(out, value, x.span))
        return out

    def _one_row(self, x: Point, layout: Layout) -> kn.Region:
        """A vector as a tile of one row."""
        out = self._row(x, layout)
        self.emit(kn.Assign(out, kn.Broadcast(self.expression(x, layout), 0, x.span), x.span))
        return out

    def _product(self, p: Point, layout: Layout) -> kn.MatMul:
        a, b = p.of
        k = p.args[-1]
        if layout[0] not in a.axes:
            a, b = b, a
        (x, ta), (y, tb) = self._operand(a, p, (layout[0], k)), self._operand(b, p, (k, layout[1]))
        return kn.MatMul(x, y, ta, tb, p.span)

    def _operand(self, x: Point, p: Point, layout: Layout) -> tuple[kn.TileExpr, bool]:
        """An operand in its type, and whether its tile lies the other way round."""
        wanted = I8 if p.dtype == I32 else p.rounds or F32
        if x.op == "cast" and x.of[0].dtype == wanted:
            (x,) = x.of
        own = self.layouts.of(x)
        natural = own if set(own) == set(layout) else layout
        if x.dtype == wanted:
            return self.region(x, natural), natural != layout
        cast = self.points.make("cast", (x,), (), wanted, wanted, x.span)
        return self.region(cast, natural), natural != layout

    def _loop_of(self, p: Point) -> None:
        """The loop that makes a fold, and all that can be made in it."""
        together = self.waits.together(p, self.scope.roots, lambda f: self.bound(f) and self.home(f))
        states = {f: self._state(f, together) for f in together}
        with self.loops(self.looped(p), frozenset(together), tuple(x for f in together for x in f.of)):
            body = self.scope
            rescale: dict[Point, kn.Region] = {}
            for f in sorted(together, key=lambda f: self.algebra.running(f) in together):
                greatest = self.algebra.running(f)
                if greatest in together:
                    self._run_along(f, states[f], rescale[greatest])
                    continue
                if any(self.algebra.running(g) is f for g in together):
                    rescale[f] = self._greater(f, states[f])
                else:
                    self._fold(f, states[f])
                body.made[f, self.layouts.of(f)] = states[f]
        for f, state in states.items():
            self.scope.made[f, self.layouts.of(f)] = state

    def _state(self, f: Point, together: list[Point]) -> kn.Region:
        layout = self.layouts.of(f)
        state = self.buffer("c" if f.op == "dot" else {"sum": "l", "max": "m", "min": "m"}[f.args[0]], f.dtype or F32, layout, span=f.span)
        start = 0.0 if f.op == "dot" else START[f.args[0]]
        if any(self.algebra.running(g) is f for g in together):
            start = LOWEST
        self.emit(kn.Assign(state, kn.Number(start, f.span), f.span))
        return state

    def _fold(self, f: Point, state: kn.Region) -> None:
        op = "add" if f.op == "dot" else FOLDS[f.args[0]]
        self.emit(kn.Assign(state, kn.Binary(op, state, self.part(f, self.layouts.of(f)), f.span), f.span))

    def _greater(self, f: Point, state: kn.Region) -> kn.Region:
        """A maximum with another tile; the factor for what was summed before."""
        layout = self.layouts.of(f)
        part = self.part(f, layout)
        before, factor = self.buffer("m_old", F32, layout, span=f.span), self.buffer("r", F32, layout, span=f.span)
        self.emit(kn.Assign(before, state, f.span))
        self.emit(kn.Assign(state, kn.Binary("max", state, part, f.span), f.span))
        self.emit(kn.Assign(factor, kn.Unary("exp", kn.Binary("sub", before, state, f.span), f.span), f.span))
        return factor

    def _run_along(self, f: Point, state: kn.Region, factor: kn.Region) -> None:
        greatest = self.algebra.running(f)
        assert greatest is not None
        layout, own = self.layouts.of(f), self.layouts.of(greatest)
        part = self.part(f, layout)
        times: kn.TileExpr = factor
        if len(layout) > len(own):
            times = kn.Broadcast(factor, 1 if own[0] is layout[0] else 0, f.span)
        kept = kn.Binary("mul", state, times, f.span)
        self.emit(kn.Assign(state, kn.Binary("add", kept, part, f.span), f.span))


def _one_column(window: kn.Region) -> kn.Region:
    """A vector of a tensor as a tile of one column."""
    return kn.Region(window.name, window.starts, (*window.extents[:-1], 1), window.span)


def _repeats(e: kn.TileExpr) -> bool:
    """Whether a tile is a repeated vector, of which a reduction is not made as it is."""
    return isinstance(e, kn.Broadcast)
