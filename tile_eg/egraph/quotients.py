"""Which quotients may be computed as products with a reciprocal.

Such a product may lie half a step beside the quotient. A rounding to a whole number, or a comparison, makes a whole step or the
other answer of that: floor(x / 7) would be 1 for x = 14. So a quotient that one of them sees stays a division.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_eg.ir.passed import Passed
from tile_eg.ir.values import Term, Values, made_of, reachable
from tile_eg.ops.elementwise import UNARY

STEPS = frozenset(op.name for op in UNARY.values() if op.native == "Cast")
"""The operations that round to a whole number."""


def reciprocals(values: Values) -> tuple[list[float], bool]:
    """The constants by whose reciprocal tiles may be multiplied, and whether rows may be by those of their divisors."""
    terms = made_of(tuple(reachable(values)))
    loops = {t.args[0]: t for t in terms if t.op == "loop"}
    seen = _all_behind({x for t in terms for x in _compared(t)}, loops)
    constants: dict[float, bool] = {}
    rows = True
    for t in terms:
        if t.op in ("binary", "s_binary") and t.args[0] == "div":
            constant = t.args[2].args[0] if t.args[2].op in ("fill", "number") else None
            if constant is None or isinstance(constant, Passed):
                rows = rows and t not in seen
            else:
                constants[constant] = constants.get(constant, True) and t not in seen
    return sorted(c for c, free in constants.items() if free), rows


def _compared(t: Term) -> Iterator[Term]:
    """The operands of a term of which it makes a whole number or a decision."""
    if t.op in ("unary", "s_unary") and t.args[0] in STEPS:
        yield t.args[1]
    if t.op in ("cast", "s_cast") and t.dtype is not None and t.dtype.whole:
        yield t.args[0]
    if t.op in ("choose", "s_choose"):
        yield from t.args[1:3]


def _all_behind(found: set[Term], loops: dict[int, Term]) -> set[Term]:
    """Every term that these are made of, in all trips of the loops that they stand in."""
    behind = made_of(tuple(found))
    while True:
        open_loops = {t.args[0] for t in behind if t.op == "arg"} & loops.keys()
        more = made_of((*behind, *(loops[i] for i in sorted(open_loops))))
        if len(more) == len(behind):
            return behind
        behind = more
