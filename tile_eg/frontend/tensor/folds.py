"""Reductions and products over tiles: in one tile, or in a loop with what can be made in the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tile_eg.errors import Span
from tile_eg.frontend.tensor.layout import Layout
from tile_eg.frontend.tensor.points import Point
from tile_eg.frontend.tensor.roles import three_dimensions
from tile_eg.frontend.tensor.tiles import Tiles
from tile_eg.frontend.tensor.waits import Waits
from tile_eg.ir import kernel as kn
from tile_eg.ops.elementwise import REDUCE, neutral
from tile_eg.ops.types import F32, I8, I32, DType

LOWEST = -3.4028234663852886e38
"""What a running maximum begins with: two infinities have no difference."""


class Folds:
    """The folds of one kernel that is built."""

    def __init__(self, build: Tiles) -> None:
        self.b, self.algebra, self.points = build, build.algebra, build.points
        self.waits = Waits(build.looped, build.algebra)

    def part(self, p: Point, layout: Layout) -> kn.TileExpr:
        """A fold or a product over one tile of its axes."""
        if p.op == "dot":
            return self._product(p, layout)
        op, axes = p.args
        tiled = [a for a in axes if a in self.b.tile]
        (x,) = p.of
        if not tiled:
            return self.b.expression(x, layout)
        if len(tiled) + len(layout) > 2:
            raise three_dimensions(p)
        own = self.b.layouts.of(x)
        inner = tuple(a for a in own if a in layout or a in tiled)
        inner = (*inner, *(a for a in (*layout, *tiled) if a not in inner))
        if len(inner) == 1:
            return kn.Reduce(op, self._one_row(x, inner), 1, p.span)
        if len(tiled) == 2 and self.b.trips(inner[1]) > 1:
            return kn.Reduce(op, self._row_of_sums(p, inner), 1, p.span)
        if len(tiled) == 2:
            first = self.points.fold(op, (inner[1],), x, p.rounds, p.span)
            return kn.Reduce(op, self._one_row(first, inner[:1]), 1, p.span)
        return self._reduced(op, x, inner, 1 if inner[1] in tiled else 0, p.span)

    def _reduced(self, op: str, x: Point, layout: Layout, axis: int, span: Span | None) -> kn.Reduce:
        value = self.b.expression(x, layout)
        if _repeats(value):
            value = self._named(value, x, layout)
        return kn.Reduce(op, value, axis, span)

    def _row_of_sums(self, p: Point, layout: Layout) -> kn.Region:
        """What the rows of a tile come to, of a fold over both of its axes that goes from tile to tile: a tile of one row."""
        (x,), op = p.of, p.args[0]
        sums, row = self.b.buffer("r", p.dtype or F32, layout[:1], span=p.span), self.b.row(p, layout[:1])
        self.b.emit(kn.Assign(sums, self._reduced(op, x, layout, 1, p.span), p.span))
        self.b.emit(kn.Assign(row, kn.Broadcast(sums, 0, p.span), p.span))
        return row

    def _named(self, value: kn.TileExpr, x: Point, layout: Layout) -> kn.Region:
        out = self.b.buffer("t", x.dtype or F32, layout, span=x.span)
        self.b.emit(kn.Assign(out, value, x.span))
        return out

    def _one_row(self, x: Point, layout: Layout) -> kn.Region:
        """A vector as a tile of one row."""
        out = self.b.row(x, layout)
        self.b.emit(kn.Assign(out, kn.Broadcast(self.b.expression(x, layout), 0, x.span), x.span))
        return out

    def _product(self, p: Point, layout: Layout) -> kn.TileExpr:
        a, b = p.of
        k = p.args[-1]
        if not layout:
            return self.part(self.algebra.as_sum(p), layout)
        if len(layout) == 1:
            return self._of_vector(p, layout)
        if layout[0] not in a.axes:
            a, b = b, a
        (x, ta), (y, tb) = self._operand(a, p, (layout[0], k)), self._operand(b, p, (k, layout[1]))
        return kn.MatMul(x, y, ta, tb, p.span)

    def _of_vector(self, p: Point, layout: Layout) -> kn.Reduce:
        """A vector times a matrix: the vector is a tile of one row."""
        k, (a, b) = p.args[-1], p.of
        if layout[0] in a.axes:
            a, b = b, a
        x, _ = self._operand(a, p, (k,))
        row = self.b.row(replace(a, dtype=self._wanted(p)), (k,), scope="shared")
        self.b.emit(kn.Assign(row, kn.Broadcast(x, 0, p.span), p.span))
        y, turned = self._operand(b, p, (k, layout[0]))
        return kn.Reduce("sum", kn.MatMul(row, y, False, turned, p.span), 0, p.span)

    def _wanted(self, p: Point) -> DType:
        """The type of the operands of a product."""
        return I8 if p.dtype == I32 else p.rounds or F32

    def _operand(self, x: Point, p: Point, layout: Layout) -> tuple[kn.TileExpr, bool]:
        """An operand in its type, and whether its tile lies the other way round."""
        wanted = self._wanted(p)
        if x.op == "cast" and x.of[0].dtype == wanted:
            (x,) = x.of
        own = self.b.layouts.of(x)
        natural = own if set(own) == set(layout) else layout
        if x.dtype == wanted:
            return self.b.region(x, natural), natural != layout
        cast = self.points.make("cast", (x,), (), wanted, wanted, x.span)
        return self.b.region(cast, natural), natural != layout

    def make(self, p: Point, stores: Sequence[Callable[[], None]] = ()) -> None:
        """The loop that makes a fold, and all that can be made in it; with what its trips store."""
        together = self.waits.together(p, self.b.scope.roots, lambda f: self.b.bound(f) and self.b.home(f))
        states = {f: self._state(f, together) for f in together}
        with self.b.loops(self.b.looped(p), frozenset(together), tuple(x for f in together for x in f.of), not stores):
            body = self.b.scope
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
                body.made[f, self.b.layouts.of(f)] = states[f]
            for store in stores:
                store()
        for f, state in states.items():
            self.b.scope.made[f, self.b.layouts.of(f)] = state

    def _state(self, f: Point, together: list[Point]) -> kn.Region:
        layout = self.b.layouts.of(f)
        name, start = ("c", 0.0) if f.op == "dot" else ("l" if f.args[0] == "sum" else "m", neutral(f.args[0], f.dtype or F32))
        state = self.b.buffer(name, f.dtype or F32, layout, span=f.span)
        if any(self.algebra.running(g) is f for g in together):
            start = LOWEST
        self.b.emit(kn.Assign(state, kn.Number(start, f.span), f.span))
        return state

    def _fold(self, f: Point, state: kn.Region) -> None:
        op = "add" if f.op == "dot" else REDUCE[f.args[0]].joins
        self.b.emit(kn.Assign(state, kn.Binary(op, state, self.part(f, self.b.layouts.of(f)), f.span), f.span))

    def _greater(self, f: Point, state: kn.Region) -> kn.Region:
        """A maximum with another tile; the factor for what was summed before."""
        layout = self.b.layouts.of(f)
        part = self.part(f, layout)
        before, factor = self.b.buffer("m_old", F32, layout, span=f.span), self.b.buffer("r", F32, layout, span=f.span)
        self.b.emit(kn.Assign(before, state, f.span))
        self.b.emit(kn.Assign(state, kn.Binary("max", state, part, f.span), f.span))
        self.b.emit(kn.Assign(factor, kn.Unary("exp", kn.Binary("sub", before, state, f.span), f.span), f.span))
        return factor

    def _run_along(self, f: Point, state: kn.Region, factor: kn.Region) -> None:
        greatest = self.algebra.running(f)
        assert greatest is not None
        layout, own = self.b.layouts.of(f), self.b.layouts.of(greatest)
        part = self.part(f, layout)
        times: kn.TileExpr = factor
        if layout and not own:
            times = self.b.repeated(factor, f, layout[-1:])
            times = kn.Broadcast(times, 0, f.span) if len(layout) > 1 else times
        elif len(layout) > len(own):
            times = kn.Broadcast(factor, 1 if own[0] is layout[0] else 0, f.span)
        kept = kn.Binary("mul", state, times, f.span)
        self.b.emit(kn.Assign(state, kn.Binary("add", kept, part, f.span), f.span))


def _repeats(e: kn.TileExpr) -> bool:
    """Whether a tile is a repeated vector, of which a reduction is not made as it is."""
    return isinstance(e, kn.Broadcast)
