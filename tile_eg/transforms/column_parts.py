"""Column parts: a product inside a loop that is too wide for L0C as so many products side by side, and what follows by parts.

An equality of values but for the order of sums. A product of wide tiles is the products with the parts of its right operand; what
is done to each of its elements is done to those of the parts; a reduction of its rows is the fold of the parts' reductions, and a
product with it on the left is the sum of the parts' products. So a trip has several small results of products under way, each of
which leaves L0C while the next one is computed, and its sums leave once (flash attention with 256 keys a trip).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from tile_eg.ir.index import EACH, Expr, const, variables
from tile_eg.ir.machine import FRACTAL
from tile_eg.ir.values import Term, Values, made_of, reachable
from tile_eg.ops.elementwise import REDUCE
from tile_eg.transforms.any_size import row_stride
from tile_eg.transforms.rewriter import Rewriter

ELEMENTWISE = ("unary", "binary", "cast", "choose", "choose_at", "nest")


class CannotSplit(Exception):
    """Some value is needed with all its columns side by side."""


def in_column_parts(values: Values, parts: int) -> Values | None:
    """The kernel with its widest products in loops in so many parts; None where there are none, or one is needed as a whole."""
    inside = made_of(tuple(t.args[2] for t in reachable(values) if t.op == "loop"))
    products = [t for t in inside if t.op == "matmul" and t.args[1].op == "load" and t.args[0].op != "matmul"]
    wide = max((t.cols for t in products), default=0)
    if parts < 2 or wide % (parts * FRACTAL):
        return None
    cut = frozenset(t for t in products if t.cols == wide and t in _scores(values, wide))
    made = Parts({}, whole=values, wide=wide, parts=parts, cut=cut)
    try:
        return made.values(values, tuple(map(made.term, values.outputs))) if made.cut else None
    except CannotSplit:
        return None


def _scores(values: Values, wide: int) -> set[Term]:
    """Products that are so wide and whose rows are reduced, or multiplied again: not those that go on as they are."""
    used = [x for t in reachable(values) for x in _along_rows(t)]
    return {x for x in made_of(tuple(used)) if x.op == "matmul" and x.cols == wide}


def _along_rows(t: Term) -> list[Term]:
    """What an operation sums or folds along rows."""
    if t.op == "matmul":
        return [] if t.args[2] else [t.args[0]]
    return [t.args[2]] if t.op == "reduce" and t.args[0] == 1 else []


@dataclass
class Parts(Rewriter):
    """Rebuilds a kernel's terms; those that are made of the products that are `cut`, element by element, in parts."""

    whole: Values = field(kw_only=True)
    wide: int = field(kw_only=True)
    parts: int = field(kw_only=True)
    cut: frozenset[Term] = field(kw_only=True)
    known: dict[Term, bool] = field(default_factory=dict)
    done: dict[tuple[Term, int], Term] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return self.wide // self.parts

    def in_parts(self, t: Term) -> bool:
        """Whether a term is one of the products that are cut, or is made of one element by element."""
        if t not in self.known:
            made = t.op in ELEMENTWISE and t.cols == self.wide
            self.known[t] = self.begins(t) or (made and any(map(self.in_parts, below(t))))
        return self.known[t]

    def begins(self, t: Term) -> bool:
        """Whether a term is in parts whatever it is made of."""
        return t in self.cut

    def term(self, t: Term) -> Term:
        """A term as a whole."""
        if t not in self.terms:
            if self.in_parts(t):
                raise CannotSplit
            if any(self.in_parts(x) for x in t.args if isinstance(x, Term)):
                self.terms[t] = self.joined(t)
        return super().term(t)

    def joined(self, t: Term) -> Term:
        """What needs all parts: a reduction of rows, or a product."""
        if t.op == "reduce" and t.args[0] == 1:
            found = [self.builder.make("reduce", 1, t.args[1], x, **shape_of(t)) for x in self.all_parts(t.args[2])]
            return self.folded(REDUCE[t.args[1]].joins, found, t)
        if t.op == "matmul" and self.in_parts(t.args[0]) and not self.in_parts(t.args[1]) and not t.args[2]:
            a, b, ta, tb = t.args
            pairs = ((self.part(a, i), self._window(b, i, rows=not tb)) for i in range(self.parts))
            return self.folded("add", [self.builder.make("matmul", x, y, ta, tb, **shape_of(t)) for x, y in pairs], t)
        raise CannotSplit

    def folded(self, name: str, found: Sequence[Term], t: Term) -> Term:
        return reduce(lambda x, y: self.builder.make("binary", name, x, y, **shape_of(t)), found)

    def all_parts(self, t: Term) -> list[Term]:
        return [self.part(t, i) for i in range(self.parts)]

    def part(self, t: Term, i: int) -> Term:
        """Some columns of a term."""
        if (t, i) not in self.done:
            self.done[t, i] = self.made_part(t, i)
        return self.done[t, i]

    def made_part(self, t: Term, i: int) -> Term:
        shape = shape_of(t) | {"cols": self.width, "vcols": self.valid(t.vcols)}
        if t in self.cut:
            a, b, ta, tb = t.args
            return self.builder.make("matmul", self.term(a), self._window(b, i, rows=tb), ta, tb, **shape)
        if t.op == "load":
            return self._window(t, i, rows=False)
        if t.op == "bcast":
            along, v = t.args
            return self.builder.make("bcast", along, self.part(v, i) if along == 0 else self.term(v), **shape)
        if t.op == "choose_at":
            op, p, q, bound, *pair = t.args
            return self.builder.make("choose_at", op, p, q, bound - i * self.width * q, *(self.part(x, i) for x in pair), **shape)
        if t.op == "nest":
            return self.builder.make("nest", self._scalar(t.args[0], i), **shape)
        if t.op in ("fill", *ELEMENTWISE):
            return self.builder.make(t.op, *(self.part(x, i) if isinstance(x, Term) else x for x in t.args), **shape)
        raise CannotSplit

    def _window(self, t: Term, i: int, rows: bool) -> Term:
        """Some of the rows or columns of a load, all of which are valid."""
        if t.op != "load" or EACH in variables(t.args[1]):
            raise CannotSplit
        version, offset, stride = t.args
        moved = offset + (row_stride(t, self.whole) if rows else 1) * (i * self.width)
        if rows:
            shape = shape_of(t) | {"rows": self.width, "vrows": self.valid(t.vrows)}
        else:
            shape = shape_of(t) | {"cols": self.width, "vcols": self.valid(t.vcols)}
        return self.builder.make("load", self.term(version), moved, stride, **shape)

    def valid(self, valid: Expr | None) -> Expr:
        """The valid columns of a part: all, where all of the whole are."""
        if valid is None or valid.value != self.wide:
            raise CannotSplit
        return const(self.width)

    def _scalar(self, s: Term, i: int) -> Term:
        """A nest's scalar expression at the elements of a part."""
        if s.op in ("elem", "elem_row", "elem_col"):
            tile = self.term(s.args[0]) if s.op == "elem_row" else self.part(s.args[0], i)
            return self.builder.make(s.op, tile, **bare_shape(s))
        if s.op == "s_reduce":
            raise CannotSplit
        args: list[Any] = [self._scalar(a, i) if isinstance(a, Term) else a for a in s.args]
        if s.op == "s_choose_at":
            args[3] = s.args[3] - i * self.width * s.args[2]
        elif s.op == "s_index":
            args[2] = s.args[2] + i * self.width * s.args[1]
        return self.builder.make(s.op, *args, **bare_shape(s))

    def values(self, v: Values, outputs: tuple[Term, ...], **changed: Any) -> Values:
        """As any rewriter, with what is known of terms that are in parts."""
        made = super().values(v, outputs, **changed)
        made.spans.update({new: v.spans[old] for (old, _), new in self.done.items() if old in v.spans})
        made.buffers.update({new: v.buffers[old] for (old, _), new in self.done.items() if old in v.buffers})
        return made


def below(t: Term) -> list[Term]:
    """The tiles that an operation on elements reads at its own element."""
    if t.op != "nest":
        return [x for x in t.args if isinstance(x, Term)]
    return [s.args[0] for s in made_of(t.args[0]) if s.op == "elem"]


def shape_of(t: Term) -> dict[str, Any]:
    return {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}


def bare_shape(s: Term) -> dict[str, Any]:
    return {name: x for name, x in shape_of(s).items() if x}
