"""Tiles that are computed element by element: what depends on positions, single numbers of tensors, and transposes."""

from __future__ import annotations

from tile_eg.frontend.conditions import Compared, Condition, both, chosen, either, opposite
from tile_eg.frontend.scalars import COMPARE
from tile_eg.frontend.tensor.indices import Affine, Axis, expression
from tile_eg.frontend.tensor.points import DIVIDES, Point
from tile_eg.frontend.tensor.tiles import Tiles
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.passed import said
from tile_eg.ops.elementwise import COMPARE as COMPARISONS
from tile_eg.ops.types import F32

ELEMENTWISE = ("unary", "binary", "compare", "logic", "where", "cast")


def takes_elements(p: Point, tiles: frozenset[Axis]) -> bool:
    """Whether an operation reads positions that vary in a tile; conditions are part of what they choose."""
    return p.op in ("position", *ELEMENTWISE) and _positional(p, tiles)


def _positional(p: Point, tiles: frozenset[Axis]) -> bool:
    if p.op == "position":
        return bool(p.axes & tiles)
    inner = p.op in ("compare", "logic") or p.op in ELEMENTWISE
    return inner and any(x.op in ("position", "compare", "logic") and _positional(x, tiles) for x in p.of)


class Elements:
    """Values at the elements of a tile; with `whole` the same on whole tiles."""

    def __init__(self, build: Tiles, layout: tuple[Axis, ...], whole: bool = False) -> None:
        self.build, self.layout, self.whole = build, layout, whole
        self.vars: dict[Axis, ix.Expr] = {}

    def statement(self, p: Point, out: kn.Region) -> kn.Parallel:
        """The loop that fills a buffer."""
        names = tuple(self.build.unique(v) for v in ("i", "j")[: max(1, len(self.layout))])
        self.vars = dict(zip(self.layout, map(ix.var, names), strict=False))
        target = kn.Region(out.name, tuple(map(ix.var, names)), (None,) * len(names), p.span)
        value = self._gathered(p) if p.op == "load" else self.value(p)
        return kn.Parallel(names, out.shape, (kn.Assign(target, value, p.span),), p.span)

    def _gathered(self, p: Point) -> kn.Region:
        """An element of a tensor at indices that are read."""
        name, at = p.args[:2]
        return kn.Region(name, tuple(map(self.position, at)), (None,) * len(at), p.span)

    def value(self, p: Point) -> kn.TileExpr:
        if p.op == "number":
            return kn.Number(said(p.args[0]), p.span)
        if self.whole and takes_elements(p, self.build.layouts.tiles):
            return self.build.expression(p, self.layout)
        if p.op == "position":
            return kn.Index(self.position(p.args[0]), p.span)
        if p.op == "where":
            return chosen(self.condition(p.of[0]), self.value(p.of[1]), self.value(p.of[2]), p.span)
        if p.op in ELEMENTWISE and takes_elements(p, self.build.layouts.tiles):
            return self._operation(p)
        return self.build.expression(p, self.layout) if self.whole else self._element(p)

    def _operation(self, p: Point) -> kn.TileExpr:
        x = [self.value(o) for o in p.of]
        if p.op == "unary":
            return kn.Unary(p.args[0], self._float(p, p.of[0], x[0]), p.span)
        if p.op == "binary":
            left, right = (self._float(p, o, e) for o, e in zip(p.of, x, strict=True))
            return self.build.quotient(p, left, right) if p.args[0] in DIVIDES else kn.Binary(p.args[0], left, right, p.span)
        assert p.op == "cast" and p.dtype is not None
        return x[0] if p.of[0].dtype in (None, p.dtype) or isinstance(x[0], kn.Index) else kn.Cast(p.dtype, x[0], p.span)

    @staticmethod
    def _float(p: Point, o: Point, e: kn.TileExpr) -> kn.TileExpr:
        cast = p.dtype == F32 and o.dtype is not None and o.dtype.whole and not isinstance(e, kn.Index)
        return kn.Cast(F32, e, o.span) if cast else e

    def _element(self, p: Point) -> kn.TileExpr:
        """An element of the buffer that holds a point."""
        own = self.build.layouts.of(p)
        if not own:
            own = self.layout[-1:]
        r = self.build.region(p, own) if p.axes & self.build.layouts.tiles or not own else self.build.spread(p, own)
        at = tuple(self.vars[a] for a in own) or (ix.ZERO,)
        return kn.Region(r.name, at, (None,) * len(at), p.span)

    def position(self, d: Affine) -> ix.Expr:
        return expression(d, lambda a: self.build.at[a] + self.vars.get(a, ix.ZERO), self.build.roles.shapes)

    def condition(self, p: Point) -> Condition:
        if p.op == "logic":
            parts = [self.condition(x) for x in p.of]
            if p.args == ("not",):
                return opposite(parts[0], p.span)
            return (both if p.args == ("and",) else either)(parts[0], parts[1], p.span)
        a, b = p.of
        if {a.op, b.op} <= {"position", "number"} and _whole_numbers(p):
            sign = COMPARISONS[p.args[0]].sign
            return COMPARE[sign](self._index(a), self._index(b))
        return Compared(p.args[0], self.value(a), self.value(b), p.span)

    def _index(self, p: Point) -> ix.Expr:
        return ix.const(int(p.args[0])) if p.op == "number" else self.position(p.args[0])


def _whole_numbers(p: Point) -> bool:
    return all(x.op != "number" or float(x.args[0]).is_integer() for x in p.of)
