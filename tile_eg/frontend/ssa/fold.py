"""The initial values of a loop: its first trip has to be what the later trips are, with these values for the states.

The first trip is built with the values from before the loop and with `k == 0` taken as true, the later ones with `arg` terms
and `k == 0` taken as false. Matching the two gives every state's initial value, whether it came from before the loop, from an
`if k == 0` in it, or from a product that overwrites on the first trip.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.ranges import Ranges, extremes, surely_equal
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.values import WRITES, Term, made_of
from tile_eg.ops.records import record

IDENTITY = {"add": 0.0, "max": -inf, "min": inf, "mul": 1.0}
STRICT = ("reduce", "matmul", "put", *WRITES, "loop")
"""Operations whose result depends on how far their operands are valid, in a way that the result's own extents do not show."""
EXACT = ("load", "fill", "s_reduce")
"""Operations that have to be equally far valid themselves."""


@record
class Varying:
    """A loop, its variable, and the ids of the loops inside it and of itself."""

    loop: int
    variable: str
    inside: frozenset[int]


def varying(loop: int, variable: str, parents: Mapping[int, int]) -> Varying:
    """What varies with a loop, `parents` being the loop around each."""
    inside = {loop}
    for i, around in sorted(parents.items()):  # a loop has a larger id than the one around it
        if around in inside:
            inside.add(i)
    return Varying(loop, variable, frozenset(inside))


class Matcher:
    """Matches terms of later trips of one loop with those of its first trip; `bindings` collects what the states were."""

    def __init__(self, scope: Varying) -> None:
        self.scope, self.loop = scope, scope.loop
        self.bindings: dict[Term, Term | float] = {}
        self.matched: dict[tuple[Term, Term, bool], None] = {}

    def match(self, later: Any, first: Any, strict: bool) -> bool:
        """Whether the two are the same but for the states; with `strict`, equally far valid."""
        if later is first:
            return True
        if isinstance(later, tuple) and isinstance(first, tuple):
            return len(later) == len(first) and all(self.match(a, b, strict) for a, b in zip(later, first, strict=True))
        if not (isinstance(later, Term) and isinstance(first, Term)):
            return later == first
        if strict and (later.vrows, later.vcols) != (first.vrows, first.vcols) and not self.is_state(later):
            return False
        if (later, first, strict) in self.matched:
            return True
        ways = (self.bind, self.inside, self.constant, self.identity)
        found = any(self.attempt(way, later, first, strict) for way in ways)
        if found:
            self.matched[later, first, strict] = None
        return found

    def attempt(self, way: Callable[[Term, Term, bool], bool], later: Term, first: Term, strict: bool) -> bool:
        """One way to match; what it has bound is forgotten where it fails."""
        bound, matched = len(self.bindings), len(self.matched)
        if way(later, first, strict):
            return True
        for known, count in ((self.bindings, bound), (self.matched, matched)):
            while len(known) > count:
                known.popitem()
        return False

    def is_state(self, t: Term) -> bool:
        return t.op in ("arg", "targ") and t.args[0] == self.loop

    def bind(self, state: Term, value: Term, strict: bool) -> bool:
        if not self.is_state(state) or (state.rows, state.cols, state.dtype) != (value.rows, value.cols, value.dtype):
            return False
        if strict and (state.vrows, state.vcols) != (value.vrows, value.vcols):
            return False
        known = value.args[0] if value.op == "fill" else value
        return self.bindings.setdefault(state, known) == known and self.invariant(value)

    def constant(self, later: Term, first: Term, strict: bool) -> bool:
        """A cast of a state that begins as a constant, which was cast while the term was made."""
        if later.op != "cast" or first.op != "fill" or not self.is_state(later.args[0]):
            return False
        return self.bindings.setdefault(later.args[0], first.args[0]) == first.args[0]

    def identity(self, later: Term, first: Term, strict: bool) -> bool:
        """`state + t` later and `t` on the first trip: the state begins as 0 (for max: -inf, ...)."""
        if later.op != "binary" or later.args[0] not in IDENTITY:
            return False
        name, *pair = later.args
        return any(self.vanishes(IDENTITY[name], state, other, first) for state, other in (pair, pair[::-1]))

    def vanishes(self, neutral: float, state: Term, other: Term, first: Term) -> bool:
        if not self.is_state(state) or not self.match(other, first, False):
            return False
        return self.bindings.setdefault(state, neutral) == neutral

    def inside(self, later: Term, first: Term, _: bool) -> bool:
        if later.op != first.op or len(later.args) != len(first.args):
            return False
        if (later.rows, later.cols, later.dtype) != (first.rows, first.cols, first.dtype):
            return False
        if later.op in EXACT and (later.vrows, later.vcols) != (first.vrows, first.vcols):
            return False
        strict = later.op in STRICT
        return all(self.match(a, b, strict) for a, b in zip(later.args, first.args, strict=True))

    def invariant(self, value: Term) -> bool:
        return not depends(value, self.scope, {})


def depends(t: Any, scope: Varying, known: dict[Term, bool]) -> bool:
    """Whether a term reads the loop's variable or its states, or is made by a loop inside it."""
    if isinstance(t, tuple):
        return any(depends(x, scope, known) for x in t)
    if isinstance(t, ix.Expr):
        return scope.variable in ix.variables(t)
    if not isinstance(t, Term):
        return False
    if t not in known:
        mine = (t.op in ("arg", "targ") and t.args[0] == scope.loop) or (t.op == "loop" and t.args[0] in scope.inside)
        known[t] = mine or depends((t.args, t.vrows, t.vcols), scope, known)
    return known[t]


def initial_values(
    scope: Varying, later: dict[str, Term], first: dict[str, Term], span: Span | None
) -> dict[Term, Term | float]:
    """What each state's arg is on the first trip: a term, or the constant that a fill of it holds. Raises TileError."""
    matcher = Matcher(scope)
    for name, term in later.items():
        if not matcher.match(term, first[name], False):
            raise TileError(
                f"the first trip of this loop does something else to `{name}` than the later trips", span,
                help="not supported yet: give the state its initial value before the loop",
            )  # fmt: skip
    return matcher.bindings


def frozen(scope: Varying, args: dict[str, Term], inits: dict[str, Term], later: dict[str, Term]) -> dict[str, Term]:
    """Names that need no state, with the value that they have: what no trip changes, and what every trip makes anew, the same,
    without a look at what was there."""
    kept = {n: inits[n] for n, a in args.items() if later[n] is a}
    known: dict[Term, bool] = {}
    same = {n: t for n, t in later.items() if not depends(t, scope, known)}
    read = made_of(tuple(later.values()))
    return kept or {n: t for n, t in same.items() if args[n] not in read}


def unread(args: dict[str, Term], later: dict[str, Term]) -> list[str]:
    """Names of whose last trip no trip reads anything."""
    read = made_of(tuple(later.values()))
    return [n for n, a in args.items() if a not in read]


def check_invariant(name: str, states: tuple[Term, Term], variable: str, ranges: Ranges, s: kn.For) -> None:
    """TileError where a tile has other valid rows or columns behind the first trip than behind later ones."""
    first, later = states
    for a, b, what in ((first.vrows, later.vrows, "rows"), (first.vcols, later.vcols, "columns")):
        assert a is not None and b is not None
        if variable in ix.variables(b) or not surely_equal(a, b, ranges):
            least, most = extremes(b, ranges)
            padded = hint("pad(A[i, j], 0)", "T.copy(A[i, j], x, pad_value=0)", s.span)
            change = f"{index_text(a)}, then {index_text(b)}" if a != b else f"{index_text(b)} is {least} to {most}"
            raise TileError(
                f"the valid {what} of `{name}` change from trip to trip of this loop: {change}", s.span,
                help=f"choose a tile that divides the tensor, or load a number for what lies beyond its end: {padded}",
            )  # fmt: skip
