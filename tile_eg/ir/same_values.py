"""Whether two values are the same ones: term by term, with index expressions that have the same value wherever they are asked."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from tile_eg.ir.index import BLOCK, Expr, const, evaluate, substitute, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.values import Term, Values

MOST = 1 << 16
"""Blocks and trips at which two index expressions are compared at most."""


def same_values(one: Values, other: Values) -> bool:
    """Whether both are the same terms, and so mean the same for any inputs. False where that cannot be seen.

    Values of any size are taken at the sizes that they have for numbers.
    """
    return _laid_out(one) == _laid_out(other) and _Same(one, other).outputs()


def _laid_out(v: Values) -> tuple[Any, ...]:
    """What values have beside their terms and the trips of their loops."""
    shapes = [(t.name, t.shape, t.dtype) for t in v.in_gm]
    return v.blocks, shapes, v.parents, v.variables, v.strips, len(v.outputs)


def _at_its_sizes(v: Values, e: Expr) -> Expr:
    """An expression of values of any size, with the numbers that they have for these."""
    return substitute(e, {name: const(n) for name, n in v.sizes.usual}) if v.sizes else e


class _Same:
    """Compares two values' terms, each pair once."""

    def __init__(self, one: Values, other: Values) -> None:
        self.one, self.other = one, other
        self.loops = {name: loop for loop, name in one.variables.items()}
        self.known: dict[tuple[Any, Any], bool] = {}

    def outputs(self) -> bool:
        return self.alike(self.one.outputs, self.other.outputs)

    def alike(self, a: Any, b: Any) -> bool:
        """Whether two arguments of terms are the same."""
        if type(a) is not type(b):
            return False
        if isinstance(a, tuple):
            return len(a) == len(b) and all(map(self.alike, a, b))
        if not isinstance(a, Term | Expr):
            return bool(a == b or (a != a and b != b))
        if (a, b) not in self.known:
            self.known[a, b] = self._terms(a, b) if isinstance(a, Term) else self._expressions(a, b)
        return self.known[a, b]

    def _terms(self, a: Term, b: Term) -> bool:
        if (a.op, a.rows, a.cols, a.dtype) != (b.op, b.rows, b.cols, b.dtype):
            return False
        if a.op == "given":
            return bool(a.args[0].name == b.args[0].name)
        if a.op == "loop" and not self._as_often(a, b):
            return False
        args = (t.args[2] if t.op == "loop" else t.args for t in (a, b))
        return self.alike(*args) and self.alike((a.vrows, a.vcols), (b.vrows, b.vcols))

    def _as_often(self, a: Term, b: Term) -> bool:
        """Whether two loops are one, with as many trips in every block."""
        loop, one, other = a.args[0], self.one, self.other
        if loop != b.args[0]:
            return False
        blocks = range(one.blocks if loop in one.counts or loop in other.counts else 1)
        return all(one.trips_of(loop, n) == other.trips_of(loop, n) for n in blocks)

    def _expressions(self, a: Expr, b: Expr) -> bool:
        """Whether two have the same value in all blocks and trips. Those with elements of inputs have to be equal."""
        a, b = _at_its_sizes(self.one, a), _at_its_sizes(self.other, b)
        if a == b:
            return True
        names = variables(a) | variables(b)
        if any(elements_in(a)) or any(elements_in(b)) or not names <= self.loops.keys() | {BLOCK}:
            return False
        ranges = [range(self.one.blocks if n == BLOCK else self.one.trips[self.loops[n]]) for n in names]
        if prod(map(len, ranges)) > MOST:
            return False
        places = (dict(zip(names, numbers, strict=True)) for numbers in product(*ranges))
        return all(evaluate(a, at) == evaluate(b, at) for at in places)

