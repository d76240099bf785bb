"""Quotients, remainders and the like of an element's position, `j % 3` or `(i + j) // 2 < n`, as values: exact in f32.

Instructions make positions that are sums of multiples of a row and a column; everything else is computed of those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.position_shifts import with_known_shifts
from tile_eg.frontend.ssa.positions import parts
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval
from tile_eg.ir.kernel import Binary, Choose, Index, Number, Parallel, Select, TileExpr, Unary, mapped
from tile_eg.ops.records import record
from tile_eg.ops.types import EXACT

NEAR = 1 << 20
"""Up to here (x + 1/2) * (1/n), rounded three times, lies on the same side of each whole number as x / n."""
REST = "rest"
"""In bounds, what the position of a tile leaves when it is divided."""


def with_known_positions(s: Parallel) -> Parallel:
    """The loop in which each shift is by a number, and each position a sum of multiples of its variables."""
    s = with_known_shifts(s)
    found = _Positions.of(s)
    return replace(s, body=tuple(replace(a, value=mapped(a.value, found.changed)) for a in s.body))


def are_computed(e: Expr, s: Parallel) -> bool:
    """Whether an index is computed element by element, as it is made of positions alone."""
    return _Positions.of(s).value(e, None) is not None


@record
class _Part:
    """What is computed of a quotient and the like, how far from 0 it gets, and what all elements have `ahead` of it."""

    part: TileExpr
    reach: int
    ahead: Expr = ix.ZERO


class _Positions:
    """Rewrites what stands in one loop, whose variables have these ranges. What it cannot compute stays as it is."""

    @classmethod
    def of(cls, s: Parallel) -> _Positions:
        return cls({v: (0, max(0, n - 1)) for v, n in zip(s.vars, s.extents, strict=True)})

    def __init__(self, ranges: Mapping[str, Interval]) -> None:
        self.ranges = dict(ranges)

    def varies(self, e: Expr) -> bool:
        return bool(ix.variables(e) & self.ranges.keys())

    def is_curved(self, e: Expr) -> bool:
        return any(atom.op != "var" and self.varies(atom) for atom in ix.terms_of(e))

    def changed(self, e: TileExpr) -> TileExpr:
        if isinstance(e, Select):
            return self.choice(e)
        if not isinstance(e, Index) or not self.is_curved(e.value):
            return e
        return e if (made := self.value(e.value, e.span)) is None else made

    def choice(self, e: TileExpr) -> TileExpr:
        """A choice by position, one comparison each, where a comparison is of what has to be computed."""
        if not isinstance(e, Select) or not self._compares_curved(e.condition):
            return e
        x, y, c = parts(e)
        x, y = self.choice(x), self.choice(y)
        if c.op == "lt" and self.is_curved(c.args[1] - c.args[0]):
            a, b = (self.value(side, e.span) for side in c.args)
            if a is not None and b is not None:
                return Choose("lt", a, b, x, y, e.span)
        return Select(c, x, y, e.span)

    def _compares_curved(self, c: Expr) -> bool:
        if c.op == "and":
            return any(map(self._compares_curved, c.args))
        if c.op != "lt":
            return False
        return self._compares_curved(c.args[0]) or self.is_curved(c.args[1] - c.args[0])

    def value(self, e: Expr, span: Span | None) -> TileExpr | None:
        """An index as a number in f32; None where it is made of more than positions, or of numbers that f32 does not hold."""
        terms = ix.terms_of(e)
        curved = {atom: k for atom, k in terms.items() if self.is_curved(atom)}
        straight = ix.from_terms({atom: k for atom, k in terms.items() if atom not in curved})
        made: TileExpr | None = None
        beside = 0
        for atom, k in curved.items():
            found = self.atom(atom, span)
            if found is None:
                return None
            beside, straight = beside + abs(k) * found.reach, straight + found.ahead * k
            made = _plus(made, found.part if k == 1 else Binary("mul", found.part, Number(float(k)), span), span)
        if beside + self._reach(straight) >= EXACT:
            return None
        return made if made is not None and straight == ix.ZERO else _plus(made, _straight(straight, span, beside), span)

    def _reach(self, straight: Expr) -> int:
        """How far from 0 a position gets by what varies in the loop and by a constant."""
        terms = ((atom, k) for atom, k in ix.terms_of(straight).items() if not ix.variables(atom) - self.ranges.keys())
        return int(sum(abs(k) * max(map(abs, ix.bounds(atom, self.ranges))) for atom, k in terms))

    def atom(self, e: Expr, span: Span | None) -> _Part | None:
        if e.op in ("div", "mod"):
            return self.divided(e, span)
        if e.op not in ("mul", "min", "max", "lt", "and"):
            return None
        x, y = (self.value(a, span) for a in e.args)
        if x is None or y is None:
            return None
        if e.op == "lt":
            return _Part(Choose("lt", x, y, Number(1.0), Number(0.0), span), 1)
        if ix.variables(e) - self.ranges.keys():
            return None
        return _Part(Binary("mul" if e.op == "and" else e.op, x, y, span), self._furthest(e))

    def _furthest(self, e: Expr) -> int:
        return int(max(map(abs, ix.bounds(e, self.ranges))))

    def divided(self, e: Expr, span: Span | None) -> _Part | None:
        """A quotient or remainder; what is the same for all elements is divided by itself, so that numbers stay small."""
        whole, n = e.args[0], e.args[1].value
        if n is None or n <= 0:
            return None
        terms = ix.terms_of(whole)
        same = ix.from_terms({atom: k for atom, k in terms.items() if not self.varies(atom)})
        own = whole - same
        ahead, rest = (ix.ZERO, same) if same.value is not None else (same // n, same % n)
        low, high = (b // n for b in self._bounds(own, rest, n))
        quotient = self._quotient(own, rest, n, span)
        if quotient is None:
            return None
        if e.op == "div":
            return _Part(quotient, int(max(-low, high, 0)), ahead)
        if isinstance(quotient, Number):
            x = self.value(own + rest - int(quotient.value) * n, span)
            return None if x is None else _Part(x, n - 1)
        x = self.value(own + rest, span)
        return None if x is None else _Part(Binary("sub", x, Binary("mul", quotient, Number(float(n)), span), span), n - 1)

    def _bounds(self, own: Expr, rest: Expr, n: int) -> Interval:
        """Those of what is divided by n, but for what is the same for all elements and divided by itself."""
        known = rest.value is not None
        return ix.bounds(own + (rest if known else ix.var(REST)), {**self.ranges, REST: (0, n - 1)})

    def _quotient(self, own: Expr, rest: Expr, n: int, span: Span | None) -> TileExpr | None:
        """(own + rest) // n."""
        low, high = self._bounds(own, rest, n)
        if low // n == high // n:
            return Number(float(low // n), span)
        power = n & (n - 1) == 0
        if max(-low, high) >= (EXACT if power else NEAR):
            return None
        x: Any = self.value(own + rest, span)
        if x is not None and not power:
            x = Binary("add", x, Number(0.5), span)
        return None if x is None else Unary("floor", Binary("mul", x, Number(1.0 / n), span), span)


def _straight(e: Expr, span: Span | None, beside: int) -> TileExpr:
    return Number(float(e.value), span) if e.value is not None else Index(e, span, beside)


def _plus(x: TileExpr | None, y: TileExpr, span: Span | None) -> TileExpr:
    return y if x is None else Binary("add", x, y, span)
