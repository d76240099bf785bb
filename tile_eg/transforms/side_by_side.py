"""Side by side: some trips of a loop that only stores, or some blocks that do not loop, as one, whose instructions take turns.

An equality of values: n trips are n / 2 trips of two steps, the second of which begins with the tensors as the first one left
them; what a block computes does not depend on the others, so one may do the work of several. What the steps compute does not
depend on one another: while an instruction of one is under way, that of another can start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tile_eg.ir.index import Expr, var
from tile_eg.ir.values import VERSIONS, Term, Values, first_version, reachable
from tile_eg.transforms.blocks_together import neighbours
from tile_eg.transforms.rewriter import Rewriter


def trips_side_by_side(values: Values, count: int) -> Values | None:
    """The kernel with `count` trips as one in each loop that only stores and holds no other one; None where there is none."""
    loops = {t.args[0]: t for t in reachable(values) if t.op == "loop" and _only_stores(values, t, count)}
    if not loops:
        return None
    again = _Together({}, names_of=values.variables, loops=loops, count=count)
    outputs = tuple(map(again.term, values.outputs))
    trips = values.trips | {number: values.trips[number] // count for number in loops}
    return _told(again.values(values, outputs, trips=trips), values, again.steps)


def _only_stores(values: Values, loop: Term, count: int) -> bool:
    """Whether trips leave nothing but tensors to each other, and are so many that each one of the others has a whole number."""
    number, trips, states, _ = loop.args
    known = number not in values.counts and number not in values.stages and trips % count == 0 and trips > count
    return known and number not in values.parents.values() and all(init.op in VERSIONS for init, _ in states)


def blocks_side_by_side(values: Values, along: int, count: int) -> Values | None:
    """A kernel without loops, with a block for each `count` neighbours along a dimension of the grid; None where that is no whole
    number of them, or where blocks read what they store."""
    blocks, terms = neighbours(values, along, count), reachable(values)
    if blocks is None or any(t.op == "loop" or (t.op == "load" and t.args[0].op != "given") for t in terms):
        return None
    first, outputs = Rewriter({}), tuple(map(first_version, values.outputs))
    copies = [Rewriter(blocks.one(i), builder=first.builder) for i in range(count)]
    for copy in copies:
        copy.terms |= dict(zip(map(first_version, values.outputs), outputs, strict=True))
        outputs = tuple(map(copy.term, values.outputs))
    return _told(copies[0].values(values, outputs, blocks=prod(blocks.grid), grid=blocks.grid), values, copies[1:])


def _told(made: Values, values: Values, copies: Sequence[Rewriter]) -> Values:
    """With what is known of the terms that copies were made of."""
    for copy in copies:
        made.spans.update({new: values.spans[old] for old, new in copy.terms.items() if old in values.spans})
        made.buffers.update({new: values.buffers[old] for old, new in copy.terms.items() if old in values.buffers})
    return made


@dataclass
class _Together(Rewriter):
    """What stands around the loops, and these with fewer trips; `names_of` are their variables."""

    names_of: Mapping[int, str] = field(kw_only=True)
    loops: Mapping[int, Term] = field(kw_only=True)
    count: int = field(kw_only=True)
    steps: list[Rewriter] = field(default_factory=list)

    def term(self, t: Term) -> Term:
        if t.op == "loop" and t not in self.terms and t.args[0] in self.loops:
            self.terms[t] = self._joined(t)
        return super().term(t)

    def _joined(self, loop: Term) -> Term:
        number, trips, states, stages = loop.args
        name = self.names_of[number]
        now = [self.builder.make("targ", number, k) for k in range(len(states))]
        for i in range(self.count):
            trip: dict[str, Expr] = {name: var(name) * self.count + i}
            step = _Step(trip, builder=self.builder, around=self, loop=number, states=now)
            self.steps.append(step)
            now = [step.term(after) for _, after in states]
        begun = [self.term(init) for init, _ in states]
        return self.builder.make("loop", number, trips // self.count, tuple(zip(begun, now, strict=True)), stages)


@dataclass
class _Step(Rewriter):
    """One of the trips that are one, which begins with these versions of the tensors."""

    around: _Together = field(kw_only=True)
    loop: int = field(kw_only=True)
    states: Sequence[Term] = field(kw_only=True)

    def term(self, t: Term) -> Term:
        if t.op == "targ" and t.args[0] == self.loop:
            return self.states[t.args[1]]
        return self.around.term(t) if t.op in ("proj", "tproj") else super().term(t)
