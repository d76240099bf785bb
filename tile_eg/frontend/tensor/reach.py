"""The part of an axis that a fold needs: tiles in which every element is masked out change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from tile_eg.frontend.tensor.algebra import axes_of, factors
from tile_eg.frontend.tensor.places import Places
from tile_eg.frontend.tensor.points import Affine, Axis, Point
from tile_eg.frontend.trips import trips
from tile_eg.ir import index as ix

Trips = tuple[ix.Expr, int, ix.Expr | None]
"""Where a loop starts, its most trips, and how many they are where the block decides it."""


def live_trips(places: Places, axis: Axis, folds: Iterable[Point]) -> Trips:
    """The trips of a loop over the tiles of an axis in which some of its folds change."""
    size, all_of = places.tile.get(axis, 1), -(-axis.extent // places.tile.get(axis, 1))
    whole: Trips = (ix.ZERO, all_of, None)
    found = [list(_bounds(places, f, axis)) for f in folds]
    if not found or not all(found):
        return whole
    low, high = ix.const(all_of), ix.ZERO
    for bounds in found:
        lows = [b for first, b in bounds if first]
        highs = [b for first, b in bounds if not first]
        low = ix.minimum(low, _most([ix.ZERO, *(b // size for b in lows)]))
        high = ix.maximum(high, _least([ix.const(all_of), *((b // size) + 1 for b in highs)]))
    extent, count = trips(low, ix.maximum(low, high), 1, places.ranges, None)
    return (low, extent, count) if extent else whole


def _most(es: list[ix.Expr]) -> ix.Expr:
    out = es[0]
    for e in es[1:]:
        out = ix.maximum(out, e)
    return out


def _least(es: list[ix.Expr]) -> ix.Expr:
    out = es[0]
    for e in es[1:]:
        out = ix.minimum(out, e)
    return out


def _bounds(places: Places, f: Point, axis: Axis) -> Iterator[tuple[bool, ix.Expr]]:
    """Bounds of the positions at which a fold changes: whether it is the first one or the last one, and that."""
    for mask in _masks(places, f):
        for c in _affine(mask):
            step = dict(c.terms).get(axis)
            rest = Affine(tuple((a, s) for a, s in c.terms if a is not axis), c.offset)
            known = all(a in places.at and not ix.variables(places.at[a]) - places.ranges.keys() for a in rest.axes)
            if step in (1, -1) and known:
                most = _largest(places, rest)
                yield (True, most * -1) if step == 1 else (False, most)


def _largest(places: Places, c: Affine) -> ix.Expr:
    out = ix.const(c.offset)
    for a, s in c.terms:
        last = places.at[a] + (places.tile.get(a, 1) - 1)
        out = out + (last if s > 0 else places.at[a]) * s
    return out


def _masks(places: Places, f: Point) -> Iterator[Point]:
    """Conditions without which an element has no part in a fold."""
    if f.op == "fold" and f.args[0] == "max":
        yield from _chosen(f.of[0], -inf)
        return
    if f.op == "fold" and f.args[0] == "min":
        yield from _chosen(f.of[0], inf)
        return
    for factor in (p for x in f.of for p, divides in factors(x) if not divides):
        yield from _chosen(factor, 0.0)
        if places.algebra.maximum_below(factor, axes_of(f)):
            yield from _chosen(factor.of[0].of[0], -inf)


def _chosen(p: Point, otherwise: float) -> Iterator[Point]:
    if p.op == "where" and p.of[2].op == "number" and p.of[2].args == (otherwise,):
        yield p.of[0]
        yield from _chosen(p.of[1], otherwise)


def _affine(c: Point) -> Iterator[Affine]:
    """What is not below 0 where a condition of positions holds."""
    if c.op == "logic" and c.args == ("and",):
        for x in c.of:
            yield from _affine(x)
    if c.op != "compare" or not {x.op for x in c.of} <= {"position", "number"}:
        return
    a, b = (Affine(offset=int(x.args[0])) if x.op == "number" else x.args[0] for x in c.of)
    if c.args[0] in ("ge", "gt", "eq"):
        yield a.plus(b, -1).plus(Affine(offset=-(c.args[0] == "gt")))
    if c.args[0] in ("le", "lt", "eq"):
        yield b.plus(a, -1).plus(Affine(offset=-(c.args[0] == "lt")))
