"""Running sums and products: of one tile, or along a loop over tiles with what the tiles before make."""

from __future__ import annotations

from tile_eg.errors import TileError
from tile_eg.frontend.tensor.indices import Axis
from tile_eg.frontend.tensor.layout import Layout
from tile_eg.frontend.tensor.points import Point
from tile_eg.frontend.tensor.tiles import Tiles
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import F32

OPERATOR = {"cumsum": "add", "cumprod": "mul"}
START = {"cumsum": 0.0, "cumprod": 1.0}


class Scans:
    """The running sums and products of one kernel that is built."""

    def __init__(self, build: Tiles) -> None:
        self.b = build

    def make(self, p: Point, layout: Layout) -> kn.Region:
        """Fills a buffer with the tile of a scan at hand."""
        op, axis = p.args
        if axis not in self.b.tile:
            return self._one_by_one(p, layout)
        x, out = self.b.region(p.of[0], layout), self.b.buffer("t", F32, layout, span=p.span)
        self.b.emit(kn.Assign(out, kn.Whole(op, (x,), (layout.index(axis), 0), p.span), p.span))
        if self.b.trips(axis) > 1:
            self._from_before(p, layout, x, out)
        return out

    def _state(self, p: Point, layout: Layout) -> kn.Region:
        """What the trips before leave, which begins before the loop over the axis does."""
        op, axis = p.args
        if not self.b.scope.order or self.b.scope.order[-1] is not axis:
            help = "make the running sum an output of a kernel of its own, and an input of this one"
            raise TileError("this running sum is needed in a loop over another axis than its own", p.span, help=help)
        state = self.b.buffer("total", F32, layout, span=p.span)
        self.b.scope.before.append(kn.Assign(state, kn.Number(START[op], p.span), p.span))
        return state

    def _one_by_one(self, p: Point, layout: Layout) -> kn.Region:
        state = self._state(p, layout)
        more = kn.Binary(OPERATOR[p.args[0]], state, self.b.expression(p.of[0], layout), p.span)
        self.b.emit(kn.Assign(state, more, p.span))
        return state

    def _from_before(self, p: Point, layout: Layout, x: kn.Region, out: kn.Region) -> None:
        """Adds the sum of the tiles before, and this tile to it."""
        axis: Axis = p.args[1]
        rest = tuple(a for a in layout if a is not axis)
        total = self._state(p, rest)
        if rest:
            along = layout.index(axis)
            more: kn.TileExpr = kn.Broadcast(total, along, p.span)
            self.b.emit(kn.Assign(out, kn.Binary("add", out, more, p.span), p.span))
            if along == 0 and axis.extent % self.b.tile[axis] == 0:
                self._last_row(out, total)
                return
            part = kn.Reduce("sum", x, along, p.span)
        else:
            self._add_number(out, total)
            row = self.b.row(p, layout)
            self.b.emit(kn.Assign(row, kn.Broadcast(x, 0, p.span), p.span))
            part = kn.Reduce("sum", row, 1, p.span)
        self.b.emit(kn.Assign(total, kn.Binary("add", total, part, p.span), p.span))

    def _last_row(self, out: kn.Region, total: kn.Region) -> None:
        """The sums of all rows so far are the last one: each tile is whole."""
        name, rows = self.b.unique("i"), out.shape[0]
        last = kn.Region(out.name, (ix.const(rows - 1), ix.var(name)), (None, None), out.span)
        element = kn.Region(total.name, (ix.var(name),), (None,), out.span)
        self.b.emit(kn.Parallel((name,), total.shape, (kn.Assign(element, last, out.span),), out.span))

    def _add_number(self, out: kn.Region, total: kn.Region) -> None:
        name = self.b.unique("i")
        element = kn.Region(out.name, (ix.var(name),), (None,), out.span)
        number = kn.Region(total.name, (ix.ZERO,), (None,), out.span)
        added = kn.Assign(element, kn.Binary("add", element, number, out.span), out.span)
        self.b.emit(kn.Parallel((name,), out.shape, (added,), out.span))
