"""Rings of flags and of slots: by which name a loop has in a later trip what has another one now.

A flag whose id is `base + (k + c) % slots` goes round: the one that trip k names so is named by the next trip with the id behind
it. So two trips may be alike although no flag has the id that it had, and a period is a trip, not as many as all rings need to
come round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tile_eg.ir.index import ONE, ZERO, Expr, terms_of, variables
from tile_eg.ir.program import Instr, Loop, Node, SetFlag, Tile, WaitFlag, walk
from tile_eg.ops.records import record

Name = tuple[object, ...]
"""Whose ring it is, and a place in it."""


@record
class Ring:
    """Places `base` to `base + slots` of its owner; `steps` is how many of them a trip of the loop goes on."""

    owner: Name
    base: int
    slots: int
    steps: int

    def places(self, trips: int) -> Iterator[tuple[Name, Name]]:
        """Each name, and what the same thing is called so many trips later."""
        for k in range(self.slots):
            yield (*self.owner, self.base + k), (*self.owner, self.base + (k + trips * self.steps) % self.slots)


def rings_of(loop: Loop, settle: Callable[[Expr], Expr]) -> Sequence[Ring]:
    """The rings of a loop's flags and of its slots under unit flags; none where one goes round in another way.

    Then only what has the same name in both trips is taken for alike.
    """
    found = {owner_and_place: None for n in walk(loop.body) for owner_and_place in _named(n, settle)}
    rings = [_ring(owner, place, loop.var) for owner, place in found]
    return () if None in rings else [ring for ring in rings if ring]


def _named(n: Node, settle: Callable[[Expr], Expr]) -> Iterator[tuple[Name, Expr]]:
    if isinstance(n, SetFlag | WaitFlag):
        yield (n.src, n.dst), settle(n.id)
    elif isinstance(n, Instr) and n.unit != ZERO:
        tile = n.dst if n.op == "mmad" else n.srcs[0]
        assert isinstance(tile, Tile)
        yield (tile.buffer,), settle(tile.slot)


def _ring(owner: Name, place: Expr, var: str) -> Ring | None:
    """The ring in which an expression goes round with a loop's variable; of one place where it does not depend on it."""
    terms = dict(terms_of(place))
    base = terms.pop(ONE, 0)
    if not terms:
        return Ring(owner, base, 1, 0)
    (inside, factor), *more = terms.items()
    slots = inside.args[1].value if inside.op == "mod" else None
    if more or factor != 1 or slots is None:
        return None
    steps = terms_of(inside.args[0])
    plain = all(e.op == "var" for e in steps if var in variables(e))
    return Ring(owner, base, slots, steps.get(Expr("var", (var,)), 0) % slots) if plain else None


def renamed(rings: Sequence[Ring], trips: int) -> Mapping[Name, Name]:
    """What is called otherwise so many trips later, by its name now; empty where two rings do not agree on a name."""
    out: dict[Name, Name] = {}
    for ring in rings:
        for now, later in ring.places(trips):
            if out.setdefault(now, later) != later:
                return {}
    return {now: later for now, later in out.items() if now != later}
