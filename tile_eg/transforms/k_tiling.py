"""Loops of products with fewer and deeper trips: which loops, and how their index expressions go on.

The equality is a rule (`rules/21_tiling.egg`); index arithmetic is Python's, and comes to the rules as facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tile_eg.ir.index import EACH, ONE, Expr, const, minimum, terms_of, var, variables
from tile_eg.ir.machine import FRACTAL_BYTES, STRIP
from tile_eg.ir.values import VERSIONS, Term, Values, reachable
from tile_eg.ops.records import record

FACTORS = (2, 4, 8)  # trips that one may be as deep as
LONGER = (2, 3, 4, 8)  # trips whose tiles one load may bring


@record
class Tiling:
    """Loop `loop` of `before` trips as loop `deep` of `trips` trips: each stands for `factor` of them. One trip is no loop."""

    loop: int
    deep: int
    factor: int
    before: int
    variable: str
    new_variable: str

    @property
    def trips(self) -> int:
        return -(-self.before // self.factor)

    def later(self, offset: Expr) -> tuple[int, Expr] | None:
        """By how much an offset moves on from trip to trip, and the offset of a deeper trip; None where it moves unevenly."""
        if EACH in variables(offset):
            return None
        step = terms_of(offset).get(var(self.variable), 0)
        rest = offset - var(self.variable) * step
        if not step or self.variable in variables(rest):
            return None
        return step, rest + self._trip() * (step * self.factor)

    def wider(self, valid: Expr, size: int) -> Expr | None:
        """How much of `factor` tiles of `size` elements is valid where `valid` is of one; None unless only the last is short."""
        total = self._total(valid, size)
        if total is None:
            return None
        if total == self.trips * self.factor * size:
            return const(self.factor * size)
        return minimum(self.factor * size, total - self._trip() * (self.factor * size))

    def ahead(self, valid: Expr, size: int) -> Expr | None:
        """How much of `factor` tiles is valid from a trip on, where `valid` is of its own; None unless only the last is short."""
        total = self._total(valid, size)
        if total is None:
            return None
        whole = total == self.trips * self.factor * size
        return const(self.factor * size) if whole else minimum(self.factor * size, total - var(self.variable) * size)

    def _total(self, valid: Expr, size: int) -> int | None:
        """The valid elements of all trips' tiles."""
        if valid.value == size:
            return self.before * size
        if valid.op != "min" or const(size) not in valid.args:
            return None
        left = terms_of(next(a for a in valid.args if a != const(size)))
        total = left.pop(ONE, 0)
        short_at_last = (self.before - 1) * size < total <= self.before * size
        return total if left == {var(self.variable): -size} and short_at_last else None

    def _trip(self) -> Expr:
        return var(self.new_variable) if self.trips > 1 else const(0)


def with_k_tilings(values: Values) -> tuple[Values, list[Tiling]]:
    """The values with an id for each deeper form of their loops of products, and what each form is."""
    tilings = list(_tilings(values))
    if not tilings:
        return values, []
    parents = values.parents | {t.deep: values.parents[t.loop] for t in tilings}
    trips = values.trips | {t.deep: t.trips for t in tilings}
    names = values.variables | {t.deep: t.new_variable for t in tilings}
    deeper = {t.deep: (t.loop, t.factor) for t in tilings}
    return replace(values, parents=parents, trips=trips, variables=names, deeper=deeper), tilings


def _tilings(values: Values) -> Iterator[Tiling]:
    new = max(values.parents, default=0) + 1
    taken = set(values.variables.values())
    for loop in _free_to_change(values):
        before, variable = values.trips[loop], values.variables[loop]
        for factor in sorted({*(f for f in FACTORS if f < before), before}):
            name = next(n for n in (f"{variable}_by{factor}" + "_" * i for i in range(len(taken) + 1)) if n not in taken)
            taken.add(name)
            yield Tiling(loop, new, factor, before, variable, name)
            new += 1


def longer_loads(values: Values, tilings: Sequence[Tiling]) -> Iterator[tuple[Tiling, Tiling | None]]:
    """Loops of products that may load several trips' tiles at once, each with what made it of the source's (None: it is that).

    Each trip's tile lies in whole fractals among the others.
    """
    depths = loops_of_products(values)
    for loop in _free_to_change(values):
        name = values.variables[loop]
        least = min((t.dtype.bytes for t in loads_in(values, name) if t.dtype), default=1)
        if depths[loop] % max(STRIP, FRACTAL_BYTES // STRIP // least):
            continue
        yield from ((t, None) for t in _longer(Tiling(loop, loop, 1, values.trips[loop], name, name)))
        for form in tilings:
            if form.loop == loop and form.trips > 1:
                yield from ((t, form) for t in _longer(form))


def _longer(form: Tiling) -> Iterator[Tiling]:
    """The numbers of trips that one load may serve in a form of a loop; there are several loads."""
    for n in LONGER:
        if form.trips % n == 0 and form.trips > n:
            yield replace(form, loop=form.deep, factor=n, before=form.trips, variable=form.new_variable)


def _free_to_change(values: Values) -> list[int]:
    """Loops of products. Slots that an author gave hold one trip's tiles as he wrote it: that loop stays."""
    slotted = {n for n, p in values.places.items() if p.slots}
    kept = {loop for loop, name in values.variables.items() if slotted and _fills_slots(values, name, slotted)}
    return [loop for loop in sorted(loops_of_products(values)) if loop not in values.stages and loop not in kept]


def _fills_slots(values: Values, variable: str, slotted: set[str]) -> bool:
    """Whether a loop loads what the author keeps in slots."""
    return any(values.buffers.get(t, ("", ""))[0] in slotted for t in loads_in(values, variable))


def loops_of_products(values: Values) -> dict[int, int]:
    """The depth of the products in loops whose states each add one product in each trip."""
    out = {}
    for t in reachable(values):
        if t.op == "loop" and t.args[1] > 1 and t.args[0] not in values.counts:
            depths = [_depth_added(t.args[0], k, init, after) for k, (init, after) in enumerate(t.args[2])]
            if depths and all(depths):
                out[t.args[0]] = max(d for d in depths if d)
    return out


def adds_products(loop: Term) -> bool:
    """Whether each state of a loop adds one product in each trip."""
    return bool(loop.args[2]) and all(_depth_added(loop.args[0], k, *pair) for k, pair in enumerate(loop.args[2]))


def _depth_added(loop: int, k: int, init: Term, after: Term) -> int | None:
    """The depth of the product that a state's next value adds to the state."""
    if init.op in VERSIONS or after.op != "binary" or after.args[0] != "add":
        return None
    products = [x for x in after.args[1:] if x.op == "matmul"]
    states = [x for x in after.args[1:] if x.op == "arg" and x.args == (loop, k)]
    if len(products) != 1 or len(states) != 1:
        return None
    a, _, transposed, _ = products[0].args
    return a.rows if transposed else a.cols


def loads_in(values: Values, variable: str) -> list[Term]:
    """The loads whose place varies with a loop's variable."""
    return [t for t in reachable(values) if t.op == "load" and variable in variables(t.args[1])]
