"""Short loops of vector work, trip by trip: what a trip makes need not lie in the place of what it reads.

An equality of values: a fold over n trips is n steps. Where a state cannot be made in its place, as that of a butterfly, whose
halves are made of neighbours, each trip of a loop begins with a copy; steps on their own take turns with two places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tile_eg.ir.index import Expr, const, variables
from tile_eg.ir.values import Term, Values, made_of, reachable
from tile_eg.transforms.rewriter import Rewriter

MOST_TERMS = 128
"""Terms that the steps of a loop may become: rules take as long as there are terms."""
ELSEWHERE = ("load", "store", "accumulate", "matmul", "loop")
"""What overlaps with other trips, and a loop in a loop."""


def with_short_loops_in_steps(values: Values) -> Values | None:
    """The kernel in which each loop outside of others that only computes, and that has few trips, is the steps of these; None
    where there is no such loop."""
    terms = reachable(values)
    loops = {t.args[0]: t for t in terms if t.op == "loop" and _is_short(values, t) and _stays_as_large(t, terms)}
    if not loops:
        return None
    again = _Steps({}, names_of=values.variables, loops=loops)
    outputs = tuple(map(again.term, values.outputs))
    left = {name: {k: x for k, x in known.items() if k not in loops} for name, known in (
        ("parents", values.parents), ("trips", values.trips), ("variables", values.variables))}  # fmt: skip
    of_steps = {old: new for step in again.steps for old, new in step.terms.items()}
    again.terms = of_steps | again.terms
    return again.values(values, outputs, **left)


def _is_short(values: Values, loop: Term) -> bool:
    number, trips, states, *_ = loop.args
    if number in values.counts or values.parents[number] or values.stages.get(number) or number in values.parents.values():
        return False
    made = _varying(loop, values.variables[number])
    return trips > 1 and trips * len(made) <= MOST_TERMS and not any(t.op in ELSEWHERE for t in made)


def _stays_as_large(loop: Term, terms: Sequence[Term]) -> bool:
    """Whether each state exists as far before the loop, in it and behind it: then one stands for the other."""
    number, _, states, *_ = loop.args
    read = [t for t in terms if (t.op == "proj" and t.args[0] is loop) or (t.op == "arg" and t.args[0] == number)]
    return all(_extents(t) == _extents(x) for t in read for x in states[t.args[1]])


def _extents(t: Term) -> tuple[Expr | None, Expr | None]:
    return t.vrows, t.vcols


def _varying(loop: Term, name: str) -> set[Term]:
    """What its states and its variable, which has this name, make another one in each trip."""
    number, _, states, *_ = loop.args
    made_with = defaultdict[Term, list[Term]](list)
    todo = []
    for t in made_of(tuple(after for _, after in states)):
        parts = list(_parts((t.args, t.vrows, t.vcols)))
        if (t.op in ("arg", "targ") and t.args[0] == number) or any(isinstance(x, Expr) and name in variables(x) for x in parts):
            todo.append(t)
        for x in parts:
            if isinstance(x, Term):
                made_with[x].append(t)
    found: set[Term] = set()
    while todo:
        t = todo.pop()
        if t not in found:
            found.add(t)
            todo += made_with[t]
    return found


def _parts(x: object) -> Iterator[object]:
    """What stands in tuples of tuples."""
    if isinstance(x, tuple):
        for y in x:
            yield from _parts(y)
    else:
        yield x


@dataclass
class _Steps(Rewriter):
    """What stands around the loops; `names_of` are their variables."""

    names_of: Mapping[int, str] = field(kw_only=True)
    loops: Mapping[int, Term] = field(kw_only=True)
    steps: list[Rewriter] = field(default_factory=list)
    ends: dict[int, Sequence[Term]] = field(default_factory=dict)

    def term(self, t: Term) -> Term:
        if t.op in ("proj", "tproj") and t.args[0].args[0] in self.loops:
            return self.after(t.args[0])[t.args[1]]
        return super().term(t)

    def after(self, loop: Term) -> Sequence[Term]:
        """The states of a loop when its last trip has ended."""
        number, trips, states, *_ = loop.args
        if number not in self.ends:
            now = [self.term(before) for before, _ in states]
            for trip in range(trips):
                step = _Step({self.names_of[number]: const(trip)}, builder=self.builder, around=self, loop=number, states=now)
                self.steps.append(step)
                now = [step.term(after) for _, after in states]
            self.ends[number] = now
        return self.ends[number]


@dataclass
class _Step(Rewriter):
    """One trip of a loop, which begins with `states`."""

    around: _Steps = field(kw_only=True)
    loop: int = field(kw_only=True)
    states: Sequence[Term] = field(kw_only=True)

    def term(self, t: Term) -> Term:
        if t.op in ("arg", "targ") and t.args[0] == self.loop:
            return self.states[t.args[1]]
        return self.around.term(t) if t.op in ("proj", "tproj") else super().term(t)
