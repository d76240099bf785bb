"""The initial values of a loop: its first trip has to be what the later trips are, with these values for the states.

The first trip is built with the values from before the loop and with `k == 0` taken as true, the later ones with `arg` terms
and `k == 0` taken as false. Matching the two gives every state's initial value, whether it came from before the loop, from an
`if k == 0` in it, or from a product that overwrites on the first trip.
"""

from __future__ import annotations

from math import inf
from typing import Any

from tile_eg.errors import TileError
from tile_eg.ir import index as ix
from tile_eg.ir.kernel import Span
from tile_eg.ir.values import Term

IDENTITY = {"add": 0.0, "max": -inf, "min": inf, "mul": 1.0}
STRICT = ("reduce", "matmul", "store", "loop", "s_reduce")
"""Operations whose result depends on how far their operands are valid, in a way that the result's own extents do not show."""


class Matcher:
    """Matches terms of later trips of one loop with those of its first trip; `bindings` collects what the states were."""

    def __init__(self, loop: int, variable: str) -> None:
        self.loop, self.variable = loop, variable
        self.bindings: dict[Term, Term | float] = {}
        self.seen: set[tuple[Term, Term, bool]] = set()

    def match(self, later: Any, first: Any, strict: bool) -> bool:
        """Whether the two are the same but for the states; with `strict`, equally far valid."""
        if later is first:
            return True
        if isinstance(later, tuple) and isinstance(first, tuple):
            return len(later) == len(first) and all(self.match(a, b, strict) for a, b in zip(later, first, strict=True))
        if not (isinstance(later, Term) and isinstance(first, Term)):
            return later == first
        if (later, first, strict) in self.seen:
            return True
        self.seen.add((later, first, strict))
        if strict and (later.vrows, later.vcols) != (first.vrows, first.vcols) and not self.is_state(later):
            return False
        return self.bind(later, first, strict) or self.identity(later, first) or self.inside(later, first)

    def is_state(self, t: Term) -> bool:
        return t.op in ("arg", "targ") and t.args[0] == self.loop

    def bind(self, state: Term, value: Term, strict: bool) -> bool:
        if not self.is_state(state) or (state.rows, state.cols, state.dtype) != (value.rows, value.cols, value.dtype):
            return False
        if strict and (state.vrows, state.vcols) != (value.vrows, value.vcols):
            return False
        return self.bindings.setdefault(state, value) is value and self.invariant(value)

    def identity(self, later: Term, first: Term) -> bool:
        """`state + t` later and `t` on the first trip: the state begins as 0 (for max: -inf, ...)."""
        if later.op != "binary" or later.args[0] not in IDENTITY:
            return False
        name, *pair = later.args
        for state, other in (pair, pair[::-1]):
            value = self.bindings.get(state)
            if self.is_state(state) and value in (None, IDENTITY[name]) and self.match(other, first, False):
                self.bindings[state] = IDENTITY[name]
                return True
        return False

    def inside(self, later: Term, first: Term) -> bool:
        if later.op != first.op or len(later.args) != len(first.args):
            return False
        if (later.rows, later.cols, later.dtype) != (first.rows, first.cols, first.dtype):
            return False
        if later.op in ("load", "fill", "given") and (later.vrows, later.vcols) != (first.vrows, first.vcols):
            return False
        strict = later.op in STRICT
        return all(self.match(a, b, strict) for a, b in zip(later.args, first.args, strict=True))

    def invariant(self, value: Term) -> bool:
        return not depends(value, self.loop, self.variable, {})


def depends(t: Any, loop: int, variable: str, known: dict[Term, bool]) -> bool:
    """Whether a term reads the loop's variable or its states."""
    if isinstance(t, tuple):
        return any(depends(x, loop, variable, known) for x in t)
    if isinstance(t, ix.Expr):
        return variable in ix.variables(t)
    if not isinstance(t, Term):
        return False
    if t not in known:
        mine = t.op in ("arg", "targ") and t.args[0] == loop
        known[t] = mine or depends((t.args, t.vrows, t.vcols), loop, variable, known)
    return known[t]


def initial_values(
    loop: int, variable: str, later: dict[str, Term], first: dict[str, Term], span: Span | None
) -> dict[Term, Term | float]:
    """What each state's arg is on the first trip: a term, or the constant that a fill of it holds. Raises TileError."""
    matcher = Matcher(loop, variable)
    for name, term in later.items():
        if not matcher.match(term, first[name], False):
            raise TileError(
                f"the first trip of this loop does something else to `{name}` than the later trips", span,
                help="not supported yet: give the state its initial value before the loop",
            )  # fmt: skip
    return matcher.bindings
