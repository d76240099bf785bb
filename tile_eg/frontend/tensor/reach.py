"""The part of an axis that a fold needs: tiles in which every element is masked out change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from math import inf

from tile_eg.frontend.ranges import extremes
from tile_eg.frontend.tensor.algebra import axes_of, factors
from tile_eg.frontend.tensor.indices import Affine, Axis
from tile_eg.frontend.tensor.places import Places
from tile_eg.frontend.tensor.points import Point
from tile_eg.frontend.trips import trips
from tile_eg.ir import index as ix

Join = Callable[[ix.Expr, ix.Expr], ix.Expr]
Trips = tuple[ix.Expr, int, ix.Expr | None]
"""Where a loop starts, its most trips, and how many they are where the block decides it."""


def live_trips(places: Places, axis: Axis, folds: Iterable[Point]) -> Trips:
    """The trips of a loop over the tiles of an axis in which some of its folds change."""
    size, all_of = places.tile.get(axis, 1), places.trips(axis)
    whole: Trips = (ix.ZERO, all_of, None)
    found = [list(_bounds(places, f, axis)) for f in folds]
    if not found or not all(found):
        return whole
    lows = {_tightest(ix.maximum, [b // size for first, b in bounds if first], ix.ZERO) for bounds in found}
    highs = {_tightest(ix.minimum, [b // size + 1 for first, b in bounds if not first], ix.const(all_of)) for bounds in found}
    low = _clipped(_loosest(ix.minimum, lows), places, all_of)
    high = _clipped(_loosest(ix.maximum, highs), places, all_of)
    if extremes(high - low, places.ranges)[0] < 0:
        high = ix.maximum(low, high)
    extent, count = trips(low, high, 1, places.ranges, None)
    behind = axis in places.roles.scanned and low != ix.ZERO  # what is left out in front belongs to a running sum
    return (low, extent, count) if extent and not behind else whole


def _tightest(join: Join, bounds: list[ix.Expr], otherwise: ix.Expr) -> ix.Expr:
    return reduce(join, dict.fromkeys(bounds)) if bounds else otherwise


def _loosest(join: Join, bounds: set[ix.Expr]) -> ix.Expr:
    return reduce(join, sorted(bounds, key=ix.text))


def _clipped(e: ix.Expr, places: Places, most: int) -> ix.Expr:
    """A number of trips within 0 .. most."""
    low, high = extremes(e, places.ranges)
    e = e if high <= most else ix.minimum(e, ix.const(most))
    return e if low >= 0 else ix.maximum(e, ix.ZERO)


def _bounds(places: Places, f: Point, axis: Axis) -> Iterator[tuple[bool, ix.Expr]]:
    """Bounds of the positions at which a fold changes: whether it is the first one or the last one, and that."""
    for mask in _masks(places, f):
        for c in _affine(mask):
            step = c.strides.get(axis)
            rest = Affine(tuple((a, s) for a, s in c.terms if a is not axis), c.offset)
            known = all(a in places.at and not ix.variables(places.at[a]) - places.ranges.keys() for a in rest.axes)
            if step in (1, -1) and known:
                most = _largest(places, rest)
                yield (True, most * -1) if step == 1 else (False, most)


def _largest(places: Places, c: Affine) -> ix.Expr:
    out = ix.const(c.offset)
    for a, s in c.strides.items():
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
    if c.args[0] == "eq" or c.args[0] in ("ge", "gt"):
        yield a.plus(b, -1).plus(Affine(offset=-(c.args[0] == "gt")))
    if c.args[0] == "eq" or c.args[0] in ("le", "lt"):
        yield b.plus(a, -1).plus(Affine(offset=-(c.args[0] == "lt")))
