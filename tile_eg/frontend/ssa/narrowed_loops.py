"""Results of loops of which fewer elements are valid than the loop makes: those of a loop that makes no more of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.frontend.ssa.tiles import Tiles, Unlike
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.values import VERSIONS, Term, loops_in, made_of

Extents = tuple[Expr, Expr]


class NarrowedLoops:
    """Loops beside others, of which states have fewer valid elements.

    `another` makes a loop like one, and gives it and the names of both loops' variables.
    """

    def __init__(self, tiles: Tiles, another: Callable[[int], tuple[int, str, str]]) -> None:
        self.tiles, self.another = tiles, another
        self.made: dict[tuple[Term, object, Extents], tuple[Term, list[int]] | None] = {}

    def result(self, x: Term, extents: Extents) -> Term | None:
        """State x of a loop with these valid rows and columns, as that of another loop; None where the loop has no such form.

        What the state is made of is narrowed as well, in each trip: where no other state meets it whole, every trip makes what
        is asked for from as much of its operands. States that end where x does stay beside it.
        """
        loop, k = x.args
        key = loop, _valid(x), extents
        if key not in self.made:
            alike = [n for n, (_, later) in enumerate(loop.args[2]) if _valid(later) == _valid(x)]
            self.made[key] = self.loop(loop, dict.fromkeys({k, *alike}, extents)) or self.loop(loop, {k: extents})
        found = self.made[key]
        if found is None or k not in found[1]:
            return None
        made = self.tiles.make(None, "proj", found[0], found[1].index(k), like=x, vrows=extents[0], vcols=extents[1])
        return self.tiles.alike_named(x, made)

    def loop(self, loop: Term, asked: dict[int, Extents]) -> tuple[Term, list[int]] | None:
        """The loop with no more of these states than is asked for, and which of its states it has."""
        number, trips, states, stages = loop.args
        nexts = tuple(later for _, later in states)
        if any(later.op in VERSIONS for later in nexts) or loops_in(nexts):
            return None
        later = self.later(number, states, asked)
        first = {n: self.tiles.with_extents(states[n][0], *asked[n]) for n in asked if later}
        if later is None or any(isinstance(t, Unlike) for t in first.values()):
            return None
        read = (t for t in made_of((*later.values(),)) if t.op == "arg" and t.args[0] == number)
        if any(_valid(t) != asked.get(t.args[1]) for t in read):
            return None
        new, before, variable = self.another(number)
        if any(before in ix.variables(e) for pair in asked.values() for e in pair):
            return None
        order = sorted(asked)
        renamed = _Renamed(self.tiles, (number, new), {before: ix.var(variable)}, {n: at for at, n in enumerate(order)})
        again = tuple((first[n], renamed.term(later[n])) for n in order)
        return self.tiles.make(self.tiles.spans.get(loop), "loop", new, trips, again, stages), order

    def later(self, number: int, states: tuple[tuple[Term, Term], ...], asked: dict[int, Extents]) -> dict[int, Term] | None:
        """What a trip makes of the states that are asked for; those that these need as well are asked for then. None where one
        cannot be made so."""
        found: dict[int, Term] = {}
        self.tiles.narrowing[number] = asked
        try:
            while left := asked.keys() - found.keys():
                for n in sorted(left):
                    made = self.tiles.with_extents(states[n][1], *asked[n])
                    if isinstance(made, Unlike):
                        return None
                    found[n] = made
        finally:
            del self.tiles.narrowing[number]
        return found


def _valid(t: Term) -> tuple[Expr | None, Expr | None]:
    """Of a vector one of the two is None."""
    return t.vrows, t.vcols


class _Renamed:
    """Terms of a loop as those of another one, its variable by another name, its states in another order."""

    def __init__(self, tiles: Tiles, loops: tuple[int, int], variables: dict[str, Expr], places: dict[int, int]) -> None:
        self.tiles, self.variables, self.places = tiles, variables, places
        self.old, self.new = loops
        self.done: dict[Term, Term] = {}

    def term(self, t: Term) -> Term:
        if t not in self.done:
            own = t.op == "arg" and t.args[0] == self.old
            args = (self.new, self.places[t.args[1]]) if own else tuple(map(self.arg, t.args))
            valid = {"vrows": self.arg(t.vrows), "vcols": self.arg(t.vcols)}
            same = args == t.args and (t.vrows, t.vcols) == (*valid.values(),)
            made = t if same else self.tiles.make(self.tiles.spans.get(t), t.op, *args, like=t, **valid)
            if t in self.tiles.borders:
                self.tiles.borders[made] = self.tiles.borders[t].at(self.variables)
            self.done[t] = self.tiles.alike_named(t, made)
        return self.done[t]

    def arg(self, arg: Any) -> Any:
        if isinstance(arg, tuple):
            return tuple(map(self.arg, arg))
        if isinstance(arg, Expr):
            return ix.substitute(arg, self.variables)
        return self.term(arg) if isinstance(arg, Term) else arg
