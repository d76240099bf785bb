"""What the work of a loop's trip depends on: the guards and sizes in it that look at the loop's variable."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from tile_eg.ir.index import Expr, variables
from tile_eg.ir.program import Instr, Loop, Node, When
from tile_eg.ops.records import record
from tile_eg.timeline.arrays import values
from tile_eg.timeline.expressions import compiled, linear

Env = Mapping[str, int]
Turn = Callable[[Instr], Expr]
Evaluator = Callable[[Expr], Callable[[Any], Any]]
"""How an expression is evaluated: of numbers, or of arrays of them."""
WORTH_A_SKIP = 24  # trips, of a loop that holds no other
LONG_PERIODS = 256  # trips: no longer period is looked for (assumed)
ONE_BY_ONE = 8
"""Trips that are looked at one by one before all that follow are looked at as an array: most differences come soon."""
AT_A_TIME = 256
"""So many trips are looked at as an array, where fewer are asked for (assumed)."""
_BENDS = ("min", "max", "lt")
_WAVES = ("mod", "div", "and")


@record
class Shape:
    """A guard or size as a function of the variables' values, which may stand for arrays in `over`. `bends` says how often it may
    change its course over the trips.

    Where it depends on a loop further inside, too, it is looked at in the first and in the last trip of that one, and so is what
    decides where between them it changes.
    """

    value: Callable[[Env], tuple[int, ...]]
    over: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    bends: int
    outside: frozenset[str]


class Kinds:
    """What is seen of some shapes in trips one behind the other: numbers, which are the same where all that is seen is."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.shapes, self.asked = shapes, 0
        self.first, self.found = 0, np.zeros(0, int)
        self.known: dict[bytes, int] = {}

    def first_other(self, var: str, env: Env, trips: range, period: int) -> int:
        """The first of the trips that is not of the kind of the one a period before it; the end of the range where all are."""
        for part in _longer_and_longer(trips, 4 * ONE_BY_ONE):
            kinds = self._of(var, env, range(part.start - period, part.stop))
            if len(differ := (kinds[period:] != kinds[:-period]).nonzero()[0]):
                return part.start + int(differ[0])
        return trips.stop

    def _of(self, var: str, env: Env, trips: range) -> np.ndarray:
        """Those of the trips; what is looked at anew is that of some more."""
        if not self.first <= trips.start <= self.first + len(self.found):
            self.first, self.found = trips.start, self.found[:0]
        behind = self.first + len(self.found)
        if behind < trips.stop:
            new = self._new(var, env, range(behind, max(trips.stop, behind + AT_A_TIME)))
            self.found = np.concatenate([self.found, new])
        return self.found[trips.start - self.first : trips.stop - self.first]

    def _new(self, var: str, env: Env, trips: range) -> np.ndarray:
        seen = np.array([x for shape in self.shapes for x in _over(shape, var, env, trips)])
        return np.array([self.known.setdefault(column.tobytes(), len(self.known)) for column in seen.T])


@record
class Shapes:
    """Those of a loop. All runs of the loop share what was found of its trips: no stretch of them is looked at twice.

    `outside` are the variables of loops around it on which they depend. By the values of these, and by period, `known` are trips
    that are all like those a period before, and whether the one behind them is not.
    """

    each: Sequence[Shape] = ()
    outside: Sequence[str] = ()
    known: dict[tuple[int, ...], tuple[range, bool]] = field(default_factory=dict)
    kinds: dict[tuple[int, ...], Kinds] = field(default_factory=dict)

    def alike_until(self, var: str, env: Env, trips: range, period: int) -> int:
        """The first of the trips that is not like the one a period before it; the end of the range where all are."""
        key = (*[env[name] for name in self.outside], period)
        seen, ended = self.known.get(key, (trips[:0], False))
        if not seen.start <= trips.start <= seen.stop:
            seen, ended = trips[:0], False
        if not ended and seen.stop < trips.stop:
            end = self._looked_at(var, env, range(seen.stop, trips.stop), period)
            seen, ended = range(seen.start, end), end < trips.stop
            self.known[key] = seen, ended
        return min(seen.stop, trips.stop)

    def _looked_at(self, var: str, env: Env, trips: range, period: int) -> int:
        """`alike_until` of trips of which nothing is known: some one by one, all that follow together. Where one asks again and
        again, they differ soon, and what has been seen together tells it."""
        waves = self.kinds.setdefault(tuple(env[name] for name in self.outside), Kinds(self.waves))
        waves.asked += 1
        often, end = waves.asked > ONE_BY_ONE, trips.stop
        for shape in self.bent if often else self.each:
            end = _alike_until(shape, var, env, range(trips.start, end), period)
        later = range(trips.start, end)[0 if often else ONE_BY_ONE :]
        return waves.first_other(var, env, later, period) if later and waves.shapes else end

    @cached_property
    def bent(self) -> Sequence[Shape]:
        """Those that change their course once at most."""
        return [shape for shape in self.each if shape.bends <= 1]

    @cached_property
    def waves(self) -> Sequence[Shape]:
        return [shape for shape in self.each if shape.bends > 1]


def shapes_of(loop: Loop, settle: Callable[[Expr], Expr], turn: Turn) -> Shapes:
    """Those of all instructions and guards in a loop that depend on its variable, simplified by `settle`, and the turns that
    prices go by; each once."""
    asked = ((settle(e), inner) for e, inner in _expressions(loop.body, {}, turn))
    found = {e: inner for e, inner in asked if e.op != "const" and loop.var in variables(e)}
    each = [_shape(e, loop.var, inner) for e, inner in found.items()]
    return Shapes(each, sorted(frozenset[str]().union(*(shape.outside for shape in each))))


def _shape(e: Expr, var: str, inner: Mapping[str, int]) -> Shape:
    outside = variables(e) - inner.keys() - {var}
    return Shape(_seen(compiled, e, var, inner), _seen(_of_arrays, e, var, inner), _bends(e, var), outside)


def _expressions(nodes: Sequence[Node], inner: Mapping[str, int], turn: Turn) -> Iterator[tuple[Expr, Mapping[str, int]]]:
    for node in nodes:
        if isinstance(node, Instr):
            asked = node.when, node.rows, node.cols, node.depth, node.unit, turn(node)
            yield from ((e, inner) for e in asked if e.op != "const")
        elif isinstance(node, Loop):
            if node.until is not None:
                yield node.until, inner
            yield from _expressions(node.body, {**inner, node.var: node.trips}, turn)
        elif isinstance(node, When):
            yield node.condition, inner
            yield from _expressions(node.body, inner, turn)


def _of_arrays(e: Expr) -> Callable[[Mapping[str, Any]], Any]:
    return partial(values, e)


def _seen(value: Evaluator, e: Expr, var: str, inner: Mapping[str, int]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of an expression by which two trips of the loop `var` are compared."""
    ends = _at_ends(value(e), e, inner)
    if not variables(e) & inner.keys() or linear(e, inner):
        return ends
    between = _between(value, e, var, inner)
    return lambda env: (*ends(env), *between(env))


def _at_ends(value: Callable[[Any], Any], e: Expr, inner: Mapping[str, int]) -> Callable[[Any], tuple[Any, ...]]:
    """The value of an expression, as `value` finds it, at the ends of the loops inside that it depends on."""
    trips = {var: n for var, n in inner.items() if var in variables(e)}
    if not trips:
        return lambda env: (value(env),)
    first, last = dict.fromkeys(trips, 0), {var: n - 1 for var, n in trips.items()}
    return lambda env: (value({**env, **first}), value({**env, **last}))


def _turning_points(e: Expr, var: str, inner: Mapping[str, int]) -> Iterator[Expr]:
    """What decides in which trips of the loops inside an expression changes its course: parts of it without their variables, and
    comparisons, minima and maxima of sides that are linear in these."""
    if not variables(e) & inner.keys():
        if var in variables(e):
            yield e
    elif e.op in _BENDS and all(linear(a, inner) for a in e.args):
        yield e
    elif e.op != "var":
        for part in e.args:
            if isinstance(part, Expr):
                yield from _turning_points(part, var, inner)


def _between(value: Evaluator, e: Expr, var: str, inner: Mapping[str, int]) -> Callable[[Any], tuple[Any, ...]]:
    """The turning points of an expression: as they are, or by how far apart their sides are at the ends of the loops inside."""
    points = dict.fromkeys(_turning_points(e, var, inner))
    each = [_apart(value, p, inner) if variables(p) & inner.keys() else partial(_as_is, value(p)) for p in points]
    return lambda env: tuple(x for one in each for x in one(env))


def _as_is(value: Callable[[Any], Any], env: Mapping[str, Any]) -> tuple[Any, ...]:
    return (value(env),)


def _apart(value: Evaluator, e: Expr, inner: Mapping[str, int]) -> Callable[[Any], tuple[Any, ...]]:
    """How far apart the sides of a comparison are at the ends of the loops inside; zeros where all ends give one answer."""
    trips = {var: n for var, n in inner.items() if var in variables(e)}
    corners = [dict(zip(trips, at, strict=True)) for at in product(*((0, n - 1) for n in trips.values()))]
    apart = value(e.args[1] - e.args[0])

    def found(env: Mapping[str, Any]) -> tuple[Any, ...]:
        ends = [apart({**env, **corner}) for corner in corners]
        above = sum((x > 0) * 1 for x in ends)
        turns = (above != 0) & (above != len(ends))
        return tuple(x * turns for x in ends)

    return found


def _bends(e: Expr, var: str) -> int:
    """How many minima, maxima and comparisons the variable meets; more than any number where it meets a remainder."""
    if var not in variables(e) or e.op == "var":
        return 0
    own = 1 if e.op in _BENDS else 1000 if e.op in _WAVES else 0
    return own + sum(_bends(a, var) for a in e.args if isinstance(a, Expr))


def periods_ahead(
    shapes: Shapes, var: str, trips: int, env: Env, period: int, *, begun: bool, worth: int = WORTH_A_SKIP
) -> int:  # fmt: skip
    """How many periods of `period` trips may be skipped, so that all of them are like those before; one trip is left at least.

    `begun`: the present trip has begun, and the one in which its rest will run has to be like it, too. On the way to a trip that
    differs, fewer trips than are `worth` a skip are run: what is known of the rhythm would be lost.
    """
    now = env[var]
    most = (trips - 1 - now) // period
    end = shapes.alike_until(var, env, range(now, now + most * period + begun), period) if most > 0 else now
    ahead = max(0, min(most, (end - begun - now) // period))
    return ahead if ahead == most or ahead * period >= worth else 0


def _alike_until(shape: Shape, var: str, env: Env, trips: range, period: int) -> int:
    """The first of the trips whose shape is not that of the trip a period before it; the end of the range where all are.

    Of a shape that changes often, only the first ones are looked at.
    """

    def at(trip: int) -> tuple[int, ...]:
        return shape.value({**env, var: trip})

    if shape.bends <= 1:  # what stays the same over a period changes once at most
        before = {at(trips.start - period), at(trips.start - 1)}
        return trips.start + bisect_left(trips, True, key=lambda trip: {at(trip)} != before)
    return next((trip for trip in trips[:ONE_BY_ONE] if at(trip) != at(trip - period)), trips.stop)


def _over(shape: Shape, var: str, env: Env, trips: range) -> list[np.ndarray]:
    """What is seen of a shape in each of the trips."""
    numbers = np.arange(trips.start, trips.stop)
    return [np.broadcast_to(x, len(numbers)) for x in shape.over({**env, var: numbers})]


def _longer_and_longer(trips: range, first: int) -> Iterator[range]:
    """The trips in parts, each four times as long as the one before: little is looked at where the first of them differ."""
    while trips:
        yield trips[:first]
        trips, first = trips[first:], 4 * first


def long_period(shapes: Shapes, var: str, trips: int, env: Env, beyond: int) -> int | None:
    """The fewest trips, more than `beyond`, after which the work of the trips ahead is that of before; None where there are none
    up to LONG_PERIODS, or too few trips to gain by it.

    Looked for in the next trips alone; how long it lasts is what `periods_ahead` says.
    """
    ahead = range(env[var], min(trips, env[var] + 3 * LONG_PERIODS))
    seen = [x for shape in shapes.each for x in _over(shape, var, env, ahead)]
    kinds = np.unique(np.array(seen), axis=1, return_inverse=True)[1].ravel() if seen and ahead else np.zeros(0, int)
    periods = (p for p in range(beyond + 1, len(kinds) // 3 + 1) if (kinds[p:-1] == kinds[: -p - 1]).all())
    return next(periods, None)
