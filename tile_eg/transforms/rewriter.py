"""Values built again with other index expressions, or with some of their terms replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tile_eg.ir.index import BLOCK, Expr, substitute, var
from tile_eg.ir.values import Builder, Term, Values


@dataclass
class Rewriter:
    """Builds terms again: variables as `names` say, and terms that `terms` has as they stand there."""

    names: Mapping[str, Expr]
    terms: dict[Term, Term] = field(default_factory=dict)
    builder: Builder = field(default_factory=Builder)

    def term(self, t: Term) -> Term:
        if t not in self.terms:
            shape = {"rows": t.rows, "cols": t.cols, "dtype": t.dtype}
            if t.vrows is None:  # no tile: a version of a tensor, or a scalar expression, which has a type
                shape = {name: value for name, value in shape.items() if value}
            else:
                shape |= {"vrows": self.anything(t.vrows), "vcols": self.anything(t.vcols)}
            self.terms[t] = self.builder.make(t.op, *map(self.anything, t.args), **shape)
        return self.terms[t]

    def anything(self, x: Any) -> Any:
        """An argument of a term: a term, an index expression, a tuple of them, or what stays as it is."""
        if isinstance(x, Term):
            return self.term(x)
        if isinstance(x, Expr):
            return substitute(x, self.names)
        return tuple(map(self.anything, x)) if isinstance(x, tuple) else x

    def values(self, v: Values, outputs: tuple[Term, ...], **changed: Any) -> Values:
        """The kernel with these last versions, which this made; what is known of the old terms holds of the new ones."""
        spans = {new: v.spans[old] for old, new in self.terms.items() if old in v.spans}
        buffers = {new: v.buffers[old] for old, new in self.terms.items() if old in v.buffers}
        counts = {loop: substitute(e, self.names) for loop, e in v.counts.items()}
        return replace(v, outputs=outputs, **{"spans": spans, "buffers": buffers, "counts": counts, **changed})


def over_blocks(values: Values, times: int) -> Values:
    """The kernel with so many blocks in the place of each: the first `values.blocks` of them are its own, and so on again."""
    again = Rewriter({BLOCK: var(BLOCK) % values.blocks})
    outputs = tuple(map(again.term, values.outputs))
    return again.values(values, outputs, blocks=values.blocks * times, grid=(*values.grid, times))
