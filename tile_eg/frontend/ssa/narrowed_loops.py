"""Results of loops of which fewer elements are valid than the loop makes: those of a loop that makes no more of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tile_eg.frontend.ssa.tiles import Tiles
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.values import VERSIONS, Term, loops_in, made_of

Extents = tuple[Expr, Expr]


def narrowed_result(
    tiles: Tiles, x: Term, extents: Extents, variables: Mapping[int, str], another: Callable[[int], int]
) -> Term | None:
    """State x of a loop with these valid rows and columns, as that of `another` loop; None where the loop has no such form.

    What the state is made of is narrowed as well, in each trip: where no other state meets it whole, every trip makes what is
    asked for from as much of its operands.
    """
    loop, k = x.args
    number, trips, states, stages = loop.args
    if any(later.op in VERSIONS for _, later in states) or loops_in(tuple(later for _, later in states)):
        return None
    asked = tiles.narrowing.setdefault(number, {k: extents})
    later: dict[int, Term] = {}
    try:
        while left := asked.keys() - later.keys():
            later |= {n: tiles.narrowed(states[n][1], *asked[n], None) for n in sorted(left)}
    finally:
        del tiles.narrowing[number]
    if any(ix.variables(e) & {variables[number]} for pair in asked.values() for e in pair):
        return None
    first = {n: tiles.narrowed(states[n][0], *asked[n], None) for n in asked}
    read = (t for t in made_of((*later.values(),)) if t.op == "arg" and t.args[0] == number)
    if any((t.vrows, t.vcols) != asked.get(t.args[1]) for t in read):
        return None
    order = sorted(asked)
    renamed = _Renamed(tiles, number, another(number), {n: at for at, n in enumerate(order)})
    again = tuple((first[n], renamed.term(later[n])) for n in order)
    made = tiles.make(tiles.spans.get(loop), "loop", renamed.new, trips, again, stages)
    return tiles.alike_named(x, tiles.make(None, "proj", made, order.index(k), like=x, vrows=extents[0], vcols=extents[1]))


class _Renamed:
    """Terms of a loop as those of another one, its states in another order."""

    def __init__(self, tiles: Tiles, old: int, new: int, places: dict[int, int]) -> None:
        self.tiles, self.old, self.new, self.places = tiles, old, new, places
        self.done: dict[Term, Term] = {}

    def term(self, t: Term) -> Term:
        if t not in self.done:
            own = t.op == "arg" and t.args[0] == self.old
            args = (self.new, self.places[t.args[1]]) if own else tuple(map(self._arg, t.args))
            same = args == t.args
            self.done[t] = t if same else self.tiles.alike_named(t, self.tiles.make(self.tiles.spans.get(t), t.op, *args, like=t))
        return self.done[t]

    def _arg(self, arg: Any) -> Any:
        if isinstance(arg, tuple):
            return tuple(map(self._arg, arg))
        return self.term(arg) if isinstance(arg, Term) else arg
