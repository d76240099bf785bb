"""Sums of products that begin with something else than zero: from zero on, and what they began with is added behind them.

An equality of values, up to the order of additions. L0C holds sums from zero on, so what a loop of products begins with would
have to be brought there, or the vector cores would add each trip's product to it.
"""

from __future__ import annotations

from typing import Any

from tile_eg.ir.values import Term, Values, reachable
from tile_eg.transforms.k_tiling import loops_of_products
from tile_eg.transforms.rewriter import Rewriter


def from_zero(values: Values) -> Values | None:
    """The kernel with its loops of products from zero on; None where no loop outside of others begins with anything else."""
    known, terms = loops_of_products(values), reachable(values)
    loops = [t for t in terms if t.op == "loop" and t.args[0] in known and values.parents[t.args[0]] == 0]
    begun = [(t, k) for t in loops for k, (init, _) in enumerate(t.args[2]) if not _is_zero(init)]
    if not begun:
        return None
    again = Rewriter({})
    for loop in dict.fromkeys(t for t, _ in begun):
        _begin_at_zero(again, loop, [t for t in terms if t.op == "proj" and t.args[0] is loop])
    return again.values(values, tuple(map(again.term, values.outputs)))


def _begin_at_zero(again: Rewriter, loop: Term, read: list[Term]) -> None:
    """Notes what is read of a loop: what each of its states began with, and the sum from zero on."""
    number, trips, states, *rest = loop.args
    zeros = [x if _is_zero(x) else again.builder.make("fill", 0.0, **_shape(again, x)) for x, _ in states]
    pairs = tuple((again.term(zero), again.term(after)) for zero, (_, after) in zip(zeros, states, strict=True))
    sums = again.builder.make("loop", number, trips, pairs, *rest)
    for t in read:
        init, one = states[t.args[1]][0], again.builder.make("proj", sums, t.args[1], **_shape(again, t))
        again.terms[t] = one if _is_zero(init) else again.builder.make("binary", "add", again.term(init), one, **_shape(again, t))


def _is_zero(t: Term) -> bool:
    return t.op == "fill" and t.args[0] == 0


def _shape(again: Rewriter, t: Term) -> dict[str, Any]:
    shape = {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}
    return {name: again.anything(x) for name, x in shape.items()}
