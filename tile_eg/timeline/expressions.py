"""Index expressions where they are evaluated often: as functions of the variables' values, and as constants where they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from tile_eg.ir.index import ONE, ZERO, Expr, Interval, both, bounds, const, some_value, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.program import Loop, Node, walk
from tile_eg.ir.sizes import sizes_in

Value = Callable[[Mapping[str, int]], int]
MOST_KEPT = 1 << 12  # values of one expression
MANY_PARTS = 16
"""An expression of so many parts takes longer to evaluate than to be looked up (assumed)."""


@lru_cache(maxsize=4096)
def compiled(e: Expr) -> Value:
    """`e` as a function of the variables' values: `ir.index.evaluate` of `e`.

    One of many parts keeps its values: which tile a trip is at stands in many expressions, and is asked for again and again.
    """
    known = variables(e) and _parts(e) >= MANY_PARTS and not sizes_in(e)
    return _remembered(_function(e), e) if known else _function(e)


@lru_cache(maxsize=4096)
def _parts(e: Expr) -> int:
    return 1 + sum(_parts(a) for a in e.args if isinstance(a, Expr))


def _remembered(value: Value, e: Expr) -> Value:
    at, known = itemgetter(*sorted(variables(e))), dict[Any, int]()

    def found(env: Mapping[str, int]) -> int:
        place = at(env)
        if place not in known:
            if len(known) == MOST_KEPT:
                known.clear()
            known[place] = value(env)
        return known[place]

    return found


def _function(e: Expr) -> Value:
    if e.op == "const":
        value = e.args[0]
        return lambda env: value
    if e.op == "var":
        return itemgetter(e.args[0])
    if e.op == "size":
        name, usual = e.args
        return lambda env: env.get(name, usual)
    if e.op == "add":
        return _sum([compiled(a) for a in e.args])
    if e.op == "read":
        place, most = compiled(e.args[1]), e.args[2]
        return lambda env: some_value(place(env), most)
    left, right = compiled(e.args[0]), compiled(e.args[1])
    by = e.args[1].args[0] if e.args[1].op == "const" else None
    return _OF_CONSTANT[e.op](left, by) if by is not None and e.op in _OF_CONSTANT else _BINARY[e.op](left, right)


@lru_cache(maxsize=4096)
def largest(e: Expr) -> Value:
    """`compiled(e)` of a size: where values of a tensor decide it, the largest that it may have."""
    if not elements_in(e):
        return compiled(e)
    names, known = tuple(sorted(variables(e))), dict[tuple[int, ...], int]()

    def found(env: Mapping[str, int]) -> int:
        at = tuple(env[n] for n in names)
        if at not in known:
            if len(known) == MOST_KEPT:
                known.clear()
            known[at] = bounds(e, {name: (n, n) for name, n in zip(names, at, strict=True)})[1]
        return known[at]

    return found


def _sum(parts: list[Value]) -> Value:
    if len(parts) == 2:
        first, second = parts
        return lambda env: first(env) + second(env)
    if len(parts) == 3:
        first, second, third = parts
        return lambda env: first(env) + second(env) + third(env)
    return lambda env: sum([part(env) for part in parts])


_OF_CONSTANT: dict[str, Callable[[Value, int], Value]] = {
    "mul": lambda a, n: lambda env: a(env) * n,
    "div": lambda a, n: lambda env: a(env) // n,
    "mod": lambda a, n: lambda env: a(env) % n,
    "lt": lambda a, n: lambda env: int(a(env) < n),
}
_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "mul": lambda a, b: lambda env: a(env) * b(env),
    "div": lambda a, b: lambda env: a(env) // b(env),
    "mod": lambda a, b: lambda env: a(env) % b(env),
    "min": lambda a, b: lambda env: min(a(env), b(env)),
    "max": lambda a, b: lambda env: max(a(env), b(env)),
    "lt": lambda a, b: lambda env: int(a(env) < b(env)),
    "and": lambda a, b: lambda env: int(bool(a(env) and b(env))),
}


class Settler:
    """Expressions as they are where every variable keeps to its range: a minimum that is always its one side is that side."""

    def __init__(self, nodes: tuple[Node, ...], env: Mapping[str, int]) -> None:
        """`nodes` are the stream whose loops give the ranges; `env` are variables that have one value."""
        self.ranges: dict[str, Interval] = {name: (n, n) for name, n in env.items()}
        for loop in walk(nodes):
            if isinstance(loop, Loop):
                self.ranges[loop.var] = 0, max(0, loop.trips - 1, self.ranges.get(loop.var, (0, 0))[1])
        self.known: dict[Expr, Expr] = {}

    def __call__(self, e: Expr) -> Expr:
        if e.op == "const":
            return e
        if e not in self.known:
            self.known[e] = self._settled(e)
        return self.known[e]

    def _settled(self, e: Expr) -> Expr:
        low, high = bounds(e, self.ranges)
        if low == high:
            return const(low)
        if e.op in ("min", "max", "lt", "and"):
            return self._joined(e, *e.args)
        return e

    def _joined(self, e: Expr, one: Expr, other: Expr) -> Expr:
        if e.op == "and":
            return both(self(one), self(other))
        (a, b), (c, d) = bounds(one, self.ranges), bounds(other, self.ranges)
        if e.op == "lt":
            return ONE if b < c else ZERO if a >= d else e
        below, above = (one, other) if e.op == "min" else (other, one)
        return self(below) if b <= c else self(above) if a >= d else e


def unsettled(e: Expr) -> Expr:
    """For streams of which nothing more is known."""
    return e


def linear(e: Expr, inner: Collection[str]) -> bool:
    """Whether an expression is linear in these variables."""
    parts = [a for a in e.args if isinstance(a, Expr) and not variables(a).isdisjoint(inner)]
    return not parts or (e.op == "add" or (e.op == "mul" and len(parts) == 1)) and all(linear(a, inner) for a in parts)
