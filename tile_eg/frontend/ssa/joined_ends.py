"""States that meet what ends elsewhere in each trip of their loop, as in `a += X[b*64 + t, 0]` near the end of X.

The equality: a state that each trip joins with something, element by element, ends behind the loop where the shortest of these
does. If nothing else sees it in between, it may end there from the first trip on. That it ends so soon is told where it is seen
behind the loop (`no_trips.refuse_seen`): a sum of tiles of which the last is shorter is not meant to be as short as that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tile_eg.frontend.ssa.no_trips import operands
from tile_eg.frontend.ssa.tiles import Tiles
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import For
from tile_eg.ir.values import WRITES, Term, made_of

Place = tuple[Term, int]
"""An axis of a tile."""


def least(e: Expr | None, variable: str, last: int) -> Expr | None:
    """The least that an extent is in the trips 0 to `last`; None where that is not known."""
    way = 0 if e is None else direction(e, variable)
    if e is None or way is None:
        return None
    return ix.substitute(e, {variable: ix.const(last if way < 0 else 0)})


def direction(e: Expr, variable: str) -> int | None:
    """1 where an expression never falls as a variable grows, -1 where it never rises, 0 where it stays; None: not known."""
    if variable not in ix.variables(e):
        return 0
    if e.op in ("var", "read"):
        return 1 if e.op == "var" else None
    ways = {direction(a, variable) for a in e.args} - {0}
    if len(ways) != 1 or None in ways:
        return None
    way = ways.pop()
    if e.op in ("add", "min", "max"):
        return way
    factor = e.args[1].value
    if e.op == "mul":
        factor = factor if factor is not None else e.args[0].value
    if e.op not in ("mul", "div") or not factor or (e.op == "div" and e.args[0].value is not None):
        return None
    return way if way is not None and factor > 0 else -way if way is not None else None


def shortened(tiles: Tiles, first: Mapping[str, Term], names: Iterable[str], variable: str, s: For) -> dict[str, Term]:
    """States of a loop that end elsewhere in each trip, as what the first trip makes of them where they end with the shortest."""
    found: dict[str, Term] = {}
    for n in names:
        ends = (first[n].vrows, first[n].vcols)
        if any(e is not None and variable in ix.variables(e) for e in ends):
            rows, cols = (least(e, variable, s.extent - 1) for e in ends)
            made = tiles.with_extents(first[n], tiles.extent(rows), tiles.extent(cols)) if rows and cols else None
            found |= {n: made} if isinstance(made, Term) else {}
    return found


def only_joined(args: Mapping[str, Term], later: Mapping[str, Term], longer: Mapping[str, Term]) -> bool:
    """Whether each trip joins states with something, and nothing else sees them before their loop has ended.

    `args`: each state as a trip reads it; `later`: what the trip makes of it; `longer`: those that are longer in some trips.
    """
    ending = {n: axes(t, args[n]) for n, t in longer.items()}
    known = made_of(tuple(later.values()))
    if any(args[n] in made_of(t) for t in known if t.op == "loop" for n in ending):
        return False
    users: dict[Term, list[Term]] = {}
    for t in known:
        for x, _ in operands(t):
            users.setdefault(x, []).append(t)
    ends = {(later[n], axis) for n, each in ending.items() for axis in each}
    states = {*later.values()}
    for n, each in ending.items():
        for axis in each:
            reached = _reached((args[n], axis), users)
            if reached is None or (later[n], axis) not in reached or any(t in states and (t, a) not in ends for t, a in reached):
                return False
    return True


def axes(longer: Term, t: Term) -> list[int]:
    """The axes on which the one is longer."""
    return [axis for axis, (a, b) in enumerate(((longer.vrows, t.vrows), (longer.vcols, t.vcols))) if a != b]


def _reached(begun: Place, users: Mapping[Term, list[Term]]) -> set[Place] | None:
    """What is made of a tile, each with the axis that this axis of it lies along; None where some of it has no such axis."""
    found, stack = {begun}, [begun]
    while stack:
        x, axis = stack.pop()
        for u in users.get(x, ()):
            if u.op in WRITES:
                return None
            for operand, onto in operands(u):
                if operand is not x:
                    continue
                if axis not in onto:
                    return None
                if (u, onto[axis]) not in found:
                    found.add((u, onto[axis]))
                    stack.append((u, onto[axis]))
    return found
