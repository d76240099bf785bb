"""Choices by position whose arms read a neighbour that not every element has: `T.if_then_else(j > 0, x[j - 1], 0.0)`.

The loop is parted where its conditions change, so that each part reads what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from types import MappingProxyType

from tile_eg.frontend.ranges import decided
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Assign, Parallel, Region, Select, TileExpr, at_places, mapped
from tile_eg.ir.operands import parts, regions

MOST = 32
"""Parts of one loop."""
Shapes = Callable[[str], tuple[int, ...] | None]
Ranges = Mapping[str, Interval]


def parted(s: Parallel, shapes: Shapes, unique: Callable[[str], str]) -> tuple[Parallel, ...]:
    """The loop, or the loops over its parts, with variables that are `unique`. It stays whole where its parts would still read
    outside, or might use what others of them write."""
    if not reads_outside(s, shapes) or not _reads_apart(s):
        return (s,)
    cuts = {v: _cuts(s, v, n) for v, n in zip(s.vars, s.extents, strict=True)}
    each = [[*pairwise(cuts[v])] for v in s.vars]
    parts = [p for where in product(*each) if (p := _part(s, where)).body] if prod(map(len, each)) <= MOST else []
    if not parts or any(reads_outside(p, shapes) for p in parts):
        return (s,)
    return tuple(_renamed(p, unique) for p in parts)


def _reads(s: Parallel) -> Iterator[Region]:
    for a in s.body:
        yield from regions(a.value)


def reads_outside(s: Parallel, shapes: Shapes, beside: Ranges = MappingProxyType({})) -> bool:
    """Whether an element that is read by the loop's own variables, and others in these ranges, may have no place."""
    own = {**beside, **{v: (0, max(0, n - 1)) for v, n in zip(s.vars, s.extents, strict=True)}}
    for r in _reads(s):
        for start, size in zip(r.starts, shapes(r.name) or (), strict=False):
            if ix.variables(start) <= own.keys() and not elements_in(start):
                low, high = ix.bounds(start, own)
                if low < 0 or high >= size:
                    return True
    return False


def _reads_apart(s: Parallel) -> bool:
    """Whether each element is read by no other iteration than the one that writes it."""
    written = {a.target.name: a.target.starts for a in s.body}
    alike = all(written[a.target.name] == a.target.starts for a in s.body)
    return alike and all(written.get(r.name, r.starts) == r.starts for r in _reads(s))


def _cuts(s: Parallel, v: str, n: int) -> list[int]:
    """The numbers of a variable at which a condition of it alone may change, and its ends."""
    found = {0, n}
    for c in (c for a in s.body for condition in conditions(a) for c in _comparisons(condition)):
        terms = dict(ix.terms_of(c.args[1] - c.args[0]))
        rest, step = terms.pop(ix.ONE, 0), terms.pop(ix.var(v), 0)
        if not terms and step:  # step * v + rest > 0
            found.add(-rest // step + 1 if step > 0 else -(-rest // -step))
    return sorted(at for at in found if 0 <= at <= n)


def conditions(a: Assign) -> Iterator[Expr]:
    """What the choices by position in an assignment go by."""
    return (e.condition for e in parts(a.value) if isinstance(e, Select))


def _comparisons(c: Expr) -> Iterator[Expr]:
    if c.op == "and" or (c.op == "lt" and any(x.op in ("lt", "and") for x in c.args)):
        for x in c.args:
            yield from _comparisons(x)
    elif c.op == "lt":
        yield c


def _part(s: Parallel, where: tuple[Interval, ...]) -> Parallel:
    """The loop over these intervals, each from its first number to before its second one."""
    extents = tuple(end - first for first, end in where)
    ranges = {v: (0, max(0, n - 1)) for v, n in zip(s.vars, extents, strict=True)}
    moved = {v: ix.var(v) + first for v, (first, _) in zip(s.vars, where, strict=True)}
    body = (_chosen(at_places(a, moved), ranges) for a in s.body)
    return _without_last(replace(s, extents=extents, body=tuple(a for a in body if a.value != a.target)))


def _without_last(s: Parallel) -> Parallel:
    """The loop over rows alone, where it is over one column."""
    if len(s.vars) < 2 or s.extents[-1] != 1:
        return s
    body = tuple(at_places(a, {s.vars[-1]: ix.ZERO}) for a in s.body)
    return replace(s, vars=s.vars[:-1], extents=s.extents[:-1], body=body)


def _chosen(a: Assign, ranges: Ranges) -> Assign:
    """The assignment without choices that are the same for all its elements."""

    def change(e: TileExpr) -> TileExpr:
        if not isinstance(e, Select) or (truth := _truth(e.condition, ranges)) is None:
            return e
        return e.x if truth else e.y

    return replace(a, value=mapped(a.value, change))


def _truth(c: Expr, ranges: Ranges) -> bool | None:
    """Whether a condition holds in these ranges, where that is the same everywhere, whatever other variables are."""
    if c.op == "and":
        found = [_truth(x, ranges) for x in c.args]
        return False if False in found else None if None in found else True
    if c.op == "lt" and c.args[1] == ix.ONE and c.args[0].op in ("lt", "and"):
        other = _truth(c.args[0], ranges)
        return None if other is None else not other
    return None if ix.variables(c) - ranges.keys() or elements_in(c) else decided(c, ranges)


def _renamed(s: Parallel, unique: Callable[[str], str]) -> Parallel:
    names = {v: unique(v) for v in s.vars}
    body = tuple(at_places(a, {v: ix.var(n) for v, n in names.items()}) for a in s.body)
    return replace(s, vars=tuple(names[v] for v in s.vars), body=body)
