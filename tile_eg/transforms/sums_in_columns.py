"""Sums in columns: a sum of wide tiles over a loop's trips as the sums of its column parts, each with products of its own.

An equality of values but for the order of sums. What a trip multiplies by is loaded in the same parts, and where the trip has it
on the other side of a product as well, that is the sum of the parts' products (latent attention, whose values are its keys). So
L0C empties one result while the next one is computed, for which a result that fills it leaves no room (heads of 256 and more).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from tile_eg.ir.machine import FRACTAL
from tile_eg.ir.values import Term, Values, reachable
from tile_eg.transforms.column_parts import ELEMENTWISE, CannotSplit, Parts, bare_shape, below, shape_of

State = tuple[int, int]
"""A loop's id, and the number of one of its states."""


def with_sums_in_columns(values: Values, parts: int, beyond: int = 0) -> Values | None:
    """The kernel with its widest sums of products over trips in so many parts; None where no product is of more than so many
    bytes in L0C, or a sum is needed as a whole."""
    found = {state: products for state, products in _sums(values) if _bytes(products[0]) > beyond}
    wide = max((products[0].cols for products in found.values()), default=0)
    widest = {state: products for state, products in found.items() if products[0].cols == wide}
    if not widest or parts < 2 or wide % (parts * FRACTAL):
        return None
    cut = frozenset(t for products in widest.values() for t in products)
    made = _Sums({}, whole=values, wide=wide, parts=parts, cut=cut, split=frozenset(widest))
    try:
        return made.values(values, tuple(map(made.term, values.outputs)))
    except CannotSplit:
        return None


def _bytes(product: Term) -> int:
    return 4 * product.rows * product.cols


def _sums(values: Values) -> Iterator[tuple[State, list[Term]]]:
    """The states of loops that are computed from themselves and products with what is loaded, with these products. Not those to
    which products are added as they are: these stay in L0C."""
    for loop in (t for t in reachable(values) if t.op == "loop"):
        for k, (_, after) in enumerate(loop.args[2]):
            parts = _elementwise(after)
            products = [t for t in parts if t.op == "matmul" and t.args[1].op == "load" and not t.args[3]]
            itself = next((t for t in parts if t.op == "arg" and t.args == (loop.args[0], k)), None)
            if products and itself and not all(t is itself or _adds_up(t) for t in parts):
                yield (loop.args[0], k), products


def _elementwise(t: Term) -> list[Term]:
    """A tile and those that it is made of element by element, each once."""
    seen, todo = dict[Term, None](), [t]
    while todo:
        t = todo.pop()
        if t not in seen:
            seen[t] = None
            todo += [x for x in below(t) if x.cols == t.cols] if t.op in ELEMENTWISE else []
    return list(seen)


def _adds_up(t: Term) -> bool:
    """Whether a term is a product, or adds what it is made of, which L0C does."""
    return t.op == "matmul" or (t.op == "binary" and t.args[0] == "add")


@dataclass
class _Sums(Parts):
    """Rebuilds a kernel's terms; states that are `split`, and what is made of them element by element, in parts."""

    split: frozenset[State] = field(kw_only=True)

    @cached_property
    def loads(self) -> frozenset[Term]:
        """What is loaded in parts, wherever it is used."""
        return frozenset(t.args[1] for t in self.cut)

    @cached_property
    def places(self) -> dict[tuple[State, int], int]:
        """Where the parts of a state are among those of its loop: behind the others but for the first one."""
        out: dict[tuple[State, int], int] = {}
        for loop in (t for t in reachable(self.whole) if t.op == "loop"):
            number, _, states, _ = loop.args
            more = count(len(states))
            for k in self._split_of(loop):
                out |= {((number, k), i): next(more) if i else k for i in range(self.parts)}
        return out

    def begins(self, t: Term) -> bool:
        if t.op == "arg":
            return t.args in self.split
        if t.op == "proj":
            return (t.args[0].args[0], t.args[1]) in self.split
        return t in self.cut or t in self.loads

    def joined(self, t: Term) -> Term:
        if t.op == "store" and not self.in_parts(t.args[0]):
            return self._stored(t)
        if t.op == "matmul" and not self.in_parts(t.args[0]) and self.in_parts(t.args[1]) and t.args[3] and not t.args[2]:
            a, b, *sides = t.args
            pairs = ((self.part(a, i), self.part(b, i)) for i in range(self.parts))
            return self.folded("add", [self.builder.make("matmul", x, y, *sides, **shape_of(t)) for x, y in pairs], t)
        return super().joined(t)

    def _stored(self, t: Term) -> Term:
        version, offset, stride, tile = t.args
        made = self.term(version)
        for i, part in enumerate(self.all_parts(tile)):
            made = self.builder.make("store", made, offset + i * self.width, stride, part, **bare_shape(t))
        return made

    def made_part(self, t: Term, i: int) -> Term:
        if t.op in ("arg", "proj") and self.begins(t):
            of, k = t.args
            loop = of.args[0] if t.op == "proj" else of
            shape = shape_of(t) | {"cols": self.width, "vcols": self.valid(t.vcols)}
            return self.builder.make(t.op, self.anything(of), self.places[(loop, k), i], **shape)
        return super().made_part(t, i)

    def term(self, t: Term) -> Term:
        if t.op == "loop" and t not in self.terms and self._split_of(t):
            self.terms[t] = self._loop(t)
        return super().term(t)

    def _split_of(self, loop: Term) -> list[int]:
        return [k for k in range(len(loop.args[2])) if (loop.args[0], k) in self.split]

    def _loop(self, loop: Term) -> Term:
        """Parts behind the first one are states behind those that there were."""
        number, trips, states, stages = loop.args
        split = self._split_of(loop)
        first = [tuple(self.part(x, 0) if k in split else self.term(x) for x in pair) for k, pair in enumerate(states)]
        more = [tuple(self.part(x, i) for x in states[k]) for k in split for i in range(1, self.parts)]
        return self.builder.make("loop", number, trips, (*first, *more), stages)

