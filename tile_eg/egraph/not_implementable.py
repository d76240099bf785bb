"""What of a kernel no rule answers, in its author's terms: values that no instruction computes in any memory."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from tile_eg.ir.values import Term, Values

if TYPE_CHECKING:
    from tile_eg.egraph.graph import Demand

WORDS = {
    "matmul": "a product", "cast": "a cast", "nest": "an element loop", "bcast": "a broadcast", "load": "a load",
    "fill": "a constant",
}  # fmt: skip


def not_implementable(where: Mapping[Any, Demand], answerable: Container[Any], order: list[Term]) -> list[Term]:
    """The kernel's values that are wanted somewhere and answered nowhere, operands before what is made of them."""
    wanted = {w.tile.term for w in where.values()}
    answered = {w.tile.term for c, w in where.items() if c in answerable}
    place = {t: i for i, t in enumerate(order)}
    return sorted((t for t in wanted - answered if t in place), key=lambda t: place[t])


def described(term: Term, values: Values) -> str:
    """A value by what makes it, its size, and its line: `sigmoid` of 128 x 128 f32, line 13."""
    span = values.spans.get(term)
    named = term.args[-2] if term.op == "reduce" else term.args[0] if term.op in ("unary", "binary") else ""
    what = f"`{named}`" if named else WORDS.get(term.op, term.op)
    return f"{what} of {term.rows} x {term.cols} {term.dtype}" + (f", line {span.line}" if span else "")
