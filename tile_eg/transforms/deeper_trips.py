"""Loops of products whose trips sizes decide, with fewer and deeper trips: several trips' tiles as one.

An equality of values: the sum over all trips is the sum over groups of them; the last group may be short, and what is valid of
its tiles says so. Of loops whose trips are known rules offer this (`rules/21_tiling.egg`); how many trips are left is here an
expression of sizes, and how an index goes on from trip to trip is seen at numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, EACH, Expr, const, evaluate, minimum, substitute, terms_of, var, variables
from tile_eg.ir.multiples import times
from tile_eg.ir.sizes import sizes_in
from tile_eg.ir.values import Term, Values, reachable
from tile_eg.transforms.any_size import row_stride
from tile_eg.transforms.k_tiling import adds_products
from tile_eg.transforms.rewriter import Rewriter

SAMPLES = ((2, 3, 101, 211), (5, 1, 307, 97), (0, 0, 17, 401), (7, 4, 997, 13))
"""Loop variables, the block, and sizes (one added for each further one) at which the steps of an index are looked at."""


class NotAlong(Exception):
    """The tiles of some trips do not lie side by side, or serve for more than products."""


def in_deeper_trips(values: Values, factor: int, loops: Sequence[Term] | None = None) -> Values | None:
    """The kernel with each loop of products whose trips sizes decide, or with these `loops` of products of known trips, in trips
    that are so many times as deep; None where it has no such loop, or not each one can."""
    loops = loops_by_sizes(values) if loops is None else loops
    try:
        again = _Deeper(values, {t.args[0]: t for t in loops}, factor)
        return again.values_in_deeper_trips() if loops else None
    except NotAlong:
        return None


def loops_by_sizes(values: Values) -> list[Term]:
    """The loops of products whose trips sizes decide."""
    return [t for t in reachable(values) if t.op == "loop" and _may_be_deeper(values, t)]


def _may_be_deeper(values: Values, loop: Term) -> bool:
    """Whether sizes alone decide the trips of a loop of products whose slots its author left free."""
    count = values.counts.get(loop.args[0])
    free = count is not None and sizes_in(count) and not variables(count) and loop.args[0] not in values.stages
    return bool(free) and adds_products(loop)


@dataclass
class _Deeper:
    values: Values
    loops: Mapping[int, Term]
    factor: int

    def values_in_deeper_trips(self) -> Values:
        v, again = self.values, Rewriter({})
        for loop, term in self.loops.items():
            self._deepen(again, loop, term)
        outputs = tuple(map(again.term, v.outputs))
        counts = v.counts | {loop: self._fewer(v.counts[loop]) for loop in self.loops if loop in v.counts}
        return again.values(v, outputs, counts=counts, trips=v.trips | {loop: self._trips(loop) for loop in self.loops})

    def _fewer(self, count: Expr) -> Expr:
        """The groups of so many trips: of y // n trips they are (y + n * (factor - 1)) // (n * factor)."""
        n = count.args[1].value if count.op == "div" else None
        y = count.args[0] if n else count
        return (y + (n or 1) * (self.factor - 1)) // ((n or 1) * self.factor)

    def _trips(self, loop: int) -> int:
        return max(2, -(-self.values.trips[loop] // self.factor))

    def _deepen(self, again: Rewriter, loop: int, term: Term) -> None:
        """Notes what the loop, and the products in it, become."""
        states = []
        for init, after in term.args[2]:
            state, product = sorted(after.args[1:], key=lambda x: x.op)
            a, b, ta, tb = product.args
            wide = again.builder.make("matmul", self._wide(again, loop, a, ta), self._wide(again, loop, b, not tb), ta, tb,
                                      **_shape(product))  # fmt: skip
            again.terms[product] = wide
            operands = (state, wide) if after.args[1] is state else (wide, state)
            again.terms[after] = again.builder.make("binary", "add", *operands, **_shape(after))
            states.append((again.term(init), again.terms[after]))
        again.terms[term] = again.builder.make("loop", loop, self._trips(loop), tuple(states), *term.args[3:])

    def _wide(self, again: Rewriter, loop: int, load: Term, down: bool) -> Term:
        """The load of several trips' tiles, side by side or one below the other (`down`); both of an operand with scales."""
        if load.op == "scaled" and not down:
            x, scale = (self._wide(again, loop, part, down) for part in load.args)
            each = load.cols // load.args[0].cols
            assert x.vcols is not None
            shape = _shape(load) | {"cols": x.cols * each, "vcols": times(x.vcols, each)}
            return again.terms.setdefault(load, again.builder.make("scaled", x, scale, **shape))
        name = self.values.variables[loop]
        if load.op != "load" or EACH in variables(load.args[1]):
            raise NotAlong
        version, offset, stride = load.args
        size, valid, across = (load.rows, load.vrows, load.vcols) if down else (load.cols, load.vcols, load.vrows)
        assert valid is not None and across is not None
        if name in variables(across) or not self._goes_on(load, name, size, down):
            raise NotAlong
        total, wide = self._total(loop, valid, size), self.factor * size
        whole = self.values.sizes.whole(total, wide) if self.values.sizes else total.value is not None and total.value % wide == 0
        own = const(wide) if whole else minimum(wide, total - var(name) * wide)
        edge, extent = ("rows", "vrows") if down else ("cols", "vcols")
        shape = _shape(load) | {edge: wide, extent: own}
        again.terms[load] = again.builder.make("load", again.term(version), _scaled(offset, name, self.factor), stride, **shape)
        return again.terms[load]

    def _goes_on(self, load: Term, name: str, size: int, down: bool) -> bool:
        """Whether the tile of each trip begins where the one before ends."""
        offset = load.args[1]
        step = ix.wrap(row_stride(load, self.values) if down else 1)
        moved = substitute(offset, {name: var(name) + 1}) - offset
        steady = all(evaluate(moved, at) == size * evaluate(step, at) for at in self._samples(offset, name))
        return steady and _is_polynomial(offset, name)

    def _samples(self, offset: Expr, name: str) -> Iterator[dict[str, int]]:
        names = self.values.sizes.names if self.values.sizes else ()
        for trip, inner, block, least in SAMPLES:
            sizes = {n: least + 2 * k for k, n in enumerate(names)}
            yield dict.fromkeys(variables(offset), inner) | {BLOCK: block} | sizes | {name: trip}

    def _total(self, loop: int, valid: Expr, size: int) -> Expr:
        """The valid elements of all trips' tiles, where only the last one may be short."""
        name, count = self.values.variables[loop], self.values.counts.get(loop, const(self.values.trips[loop]))
        if valid.value == size:
            return self._whole_total(count, size) or count * size
        if valid.op != "min" or const(size) not in valid.args:
            raise NotAlong
        left = next(a for a in valid.args if a != const(size))
        terms = terms_of(left)
        total = left + var(name) * size
        if terms.get(var(name)) != -size or variables(total) or (total + (size - 1)) // size != count:
            raise NotAlong
        return total

    def _whole_total(self, count: Expr, size: int) -> Expr | None:
        """x where `count` is x / size, rounded up, and x is known to be a multiple of size."""
        if self.values.sizes is None or count.op != "div" or count.args[1].value != size:
            return None
        total = count.args[0] - (size - 1)
        return total if self.values.sizes.whole(total, size) else None


def _is_polynomial(e: Expr, name: str) -> bool:
    """Whether a variable stands in sums and products alone: by a quotient, say, an index may jump at trips that no sample has."""
    if e.op == "var" or name not in variables(e):
        return True
    return e.op in ("add", "mul") and all(_is_polynomial(a, name) for a in e.args)


def _scaled(e: Expr, name: str, factor: int) -> Expr:
    """e with `factor` times a variable in its place, numbers outermost in products."""
    if e.op == "mul" and e.args[1].value is None:
        a, b = (_scaled(x, name, factor) for x in e.args)
        return _product(a, b)
    if e.op in ("const", "var", "size", "read"):
        return substitute(e, {name: var(name) * factor})
    return ix.with_operands(e, [_scaled(x, name, factor) for x in e.args])


def _product(a: Expr, b: Expr) -> Expr:
    """a * b; the number that a is a multiple of stands outside."""
    number = 1
    if a.op == "mul" and a.args[1].value is not None:
        a, number = a.args[0], a.args[1].args[0]
    return ix.mul(ix.mul(a, b), const(number))


def _shape(t: Term) -> dict[str, Any]:
    return {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}
