"""The kernel tree of an expression at one set of tile sizes: a grid over the outputs, loops over what is reduced.

A fold whose axis does not lie in one tile is a loop; folds over the same axis that do not wait for each other share it, and sums
of exponentials less a maximum run along with that maximum.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tile_eg.errors import TileError
from tile_eg.frontend.tensor.algebra import Algebra
from tile_eg.frontend.tensor.elements import Elements, takes_elements
from tile_eg.frontend.tensor.folds import Folds
from tile_eg.frontend.tensor.indices import Axis, diagonal, loadable, reads
from tile_eg.frontend.tensor.layout import Layout
from tile_eg.frontend.tensor.points import DIVIDES, Point, goes_across
from tile_eg.frontend.tensor.roles import Output, Roles
from tile_eg.frontend.tensor.scans import Scans
from tile_eg.frontend.tensor.stepped_tiles import Stepped
from tile_eg.frontend.tensor.steps import stepped
from tile_eg.frontend.tensor.tiles import Tiles, held, one_column
from tile_eg.ir import kernel as kn
from tile_eg.ir.passed import said
from tile_eg.ops.types import F32


class Build(Tiles):
    """One kernel. `sizes` are those of the open axes, `names` the names that are taken."""

    def __init__(self, roles: Roles, algebra: Algebra, sizes: Mapping[str, int], names: set[str]) -> None:
        super().__init__(roles, algebra, sizes, names)
        self.folds, self.scans, self.steps = Folds(self), Scans(self), Stepped(self)

    def statements(self) -> list[kn.Stmt]:
        inner: dict[tuple[Axis, ...], list[int]] = {}
        for n, o in enumerate(self.roles.outputs):
            looped = [a for d in o.at for a in d.axes if a not in self.roles.outer and self.trips(a) > 1]
            inner.setdefault(tuple(self.roles.in_order(looped)), []).append(n)
        for axes, outputs in sorted(inner.items(), key=lambda group: not self._carrier(*group)):
            for n in outputs:
                self._prepare(self.roles.outputs[n].value, axes)
            carrier = self._carrier(axes, outputs)
            if carrier:
                self.folds.make(carrier, [partial(self._store, n) for n in outputs])
                continue
            with self.loops(axes, frozenset(), tuple(self.roles.outputs[n].value for n in outputs)):
                for n in outputs:
                    self._store(n)
        return self.scope.statements

    def _carrier(self, axes: tuple[Axis, ...], outputs: list[int]) -> Point | None:
        """A fold of another output over the axes along which some outputs are stored: one loop can do both."""
        values = [o.value for o in self.roles.outputs]
        if not axes or any({*axes} & {*self.looped(f)} for f in self.points.folds_in_order([values[n] for n in outputs])):
            return None
        others = self.points.folds_in_order([v for n, v in enumerate(values) if n not in outputs])
        able = (f for f in others if self.looped(f) == axes and not self.folds.waits.round(f) and self.bound(f))
        return next((f for f in able if (f, self.layouts.of(f)) not in self.scope.made), None)

    def _prepare(self, p: Point, axes: tuple[Axis, ...]) -> None:
        """Makes the folds that have to be over before a loop."""
        for f in self.points.folds_in_order([p]) if axes else ():
            if self.looped(f) and not f.axes & set(axes) and self.bound(f):
                self.region(f, self.layouts.of(f))

    def _store(self, n: int) -> None:
        o = self.roles.outputs[n]
        layout = self.layouts.of_indices(o.at)
        if stepped(o.at, layout):
            if n in self.roles.turns:
                self.steps.store(o, self.roles.outputs[self.roles.turns[n]])
            return
        region = self.window(o.tensor.name, o.at, layout, o.value.span or o.tensor.span)
        value = self.stored(o, layout)
        if len(layout) == 1 and self.roles.apart(o.tensor.name, o.at, layout[0]):
            region = one_column(region)
            value = value if isinstance(value, kn.Number | kn.Index) else kn.Broadcast(value, 1, o.value.span)
        self.emit(kn.Assign(region, value, o.value.span))

    def stored(self, o: Output, layout: Layout) -> kn.TileExpr:
        value = self.expression(o.value, layout)
        if o.tensor.dtype.whole and o.value.dtype not in (None, o.tensor.dtype):
            return kn.Cast(o.tensor.dtype, value, o.value.span)
        return value

    def region(self, p: Point, layout: Layout) -> kn.Region:
        """A buffer that holds a point's tile, filled where that can be done first.

        What was made further outside is of other tiles: a loop between binds its axes anew.
        """
        home = self.home(p)
        scope = self.scope
        while (p, layout) not in scope.made and scope is not home:
            assert scope.outside is not None
            scope = scope.outside
        if (p, layout) in scope.made:
            return scope.made[p, layout]
        with self.inside(home):
            made = self._filled(p, layout)
        home.made.setdefault((p, layout), made)
        return made

    def _filled(self, p: Point, layout: Layout) -> kn.Region:
        if p.op in ("load", "fold", "dot") and len(layout) == 2 and layout != self.layouts.of(p):
            return self._turned(p, layout)
        if p.op in ("fold", "dot") and self.looped(p):
            self.folds.make(p)
            return self.region(p, layout)
        if p.op == "load":
            return self._loaded(p, layout)
        if p.op == "scan":
            return self.scans.make(p, layout)
        if takes_elements(p, self.layouts.tiles):
            out = self.buffer("t", p.dtype or F32, layout, span=p.span)
            self.emit(Elements(self, layout).statement(p, out))
            return out
        name = {"dot": "c", "fold": "r"}.get(p.op, "t")
        out = self.buffer(name, p.dtype or F32, layout, span=p.span)
        value = self.folds.part(p, layout) if p.op in ("fold", "dot") else self.computed(p, layout)
        self.emit(kn.Assign(out, value, p.span))
        return out

    def _loaded(self, p: Point, layout: Layout) -> kn.Region:
        if any(d.inside.intersection(layout) for d in p.args[1]) or diagonal(p.args[1]) & {*layout}:
            return self._gathered(p, layout)
        if stepped(p.args[1], layout) and any(self.tile[a] > 1 for a in layout):
            return self.steps.load(p, layout)
        window = self.window(p.args[0], p.args[1], layout, p.span)
        if len(layout) == 1 and self.roles.apart(p.args[0], p.args[1], layout[0]):
            return self._column(p, window, layout)
        out = self.buffer(p.args[0].lower(), p.dtype or F32, layout, "shared", p.span)
        self.emit(kn.Assign(out, held(p, window), p.span))
        return out

    def _turned(self, p: Point, layout: Layout) -> kn.Region:
        """A tile that is made in the other order than it is used in."""
        made, out = self.region(p, self.layouts.of(p)), self.buffer("t", p.dtype or F32, layout, span=p.span)
        self.emit(kn.Assign(out, kn.Whole("transpose", (made,), (0, 0), p.span), p.span))
        return out

    def _gathered(self, p: Point, layout: Layout) -> kn.Region:
        """A tile whose rows, or a vector whose elements, lie where an input says."""
        if not loadable(p.args[1], layout):
            if not any(reads(p.args[1])):
                raise goes_across(p.span)
            help = "transpose the array before the call, and take rows of it"
            message = "columns at indices that are read are taken of one row at a time: this takes tiles of them"
            raise TileError(message, p.span, help=help)
        if len(layout) > 1 and diagonal(p.args[1]) & {*layout}:
            help = "reshape the array before the call, so that one index picks them"
            raise TileError("of a diagonal single elements are taken, not rows", p.span, help=help)
        out = self.buffer(p.args[0].lower(), p.dtype or F32, layout, "shared", p.span)
        self.emit(Elements(self, layout).statement(p, out))
        return out

    def _column(self, p: Point, window: kn.Region, layout: Layout) -> kn.Region:
        """A vector whose elements do not lie side by side: a tile of one column, whose rows have a sum each."""
        column = self.row(p, layout, turned=True, scope="shared")
        self.emit(kn.Assign(column, held(p, one_column(window)), p.span))
        out = self.buffer("t", p.dtype or F32, layout, span=p.span)
        self.emit(kn.Assign(out, kn.Reduce("sum", column, 1, p.span), p.span))
        return out

    # ---- expressions ----

    def expression(self, p: Point, layout: Layout) -> kn.TileExpr:
        """A point on the tile of a layout, repeated along axes that it has not."""
        own = tuple(a for a in layout if a in p.axes)
        if p.op == "number":
            return kn.Number(said(p.args[0]), p.span)
        if p.op == "position" and not own:
            return kn.Index(self.place(p.args[0]), p.span)
        if not own and layout:
            row = self.spread(p, layout[-1:])
            return kn.Broadcast(row, 0, p.span) if len(layout) > 1 else row
        if own != layout:
            return kn.Broadcast(self.expression(p, own), 1 if own[0] is layout[0] else 0, p.span)
        return self.region(p, layout) if self.kept(p) else self.computed(p, layout)

    def spread(self, p: Point, layout: Layout) -> kn.Region:
        """One number as a vector: a tile of one row that it fills, whose columns have a sum each."""
        home = self.home(p)
        if (p, layout) not in home.made:
            with self.inside(home):
                out = self.repeated(self.region(p, ()), p, layout)
            home.made[p, layout] = out
        return home.made[p, layout]

    def kept(self, p: Point) -> bool:
        """Whether a point gets a buffer: what moves or folds tiles, and what several read."""
        if p.op in ("load", "fold", "dot", "scan") or takes_elements(p, self.layouts.tiles) or not p.axes & set(self.tile):
            return True
        return self.layouts.uses[p] > 1 and p.op != "cast"

    def computed(self, p: Point, layout: Layout) -> kn.TileExpr:
        x = [self.expression(o, layout) for o in p.of] if p.op != "where" else []
        match p.op:
            case "unary":
                return kn.Unary(p.args[0], self._floats(p, x)[0], p.span)
            case "binary":
                left, right = self._floats(p, x)
                if p.args[0] in DIVIDES:
                    return self.quotient(p, left, right)
                return kn.Binary(p.args[0], left, right, p.span)
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
