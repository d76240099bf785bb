"""Sizes that are cut into whole tiles: which ones these are, as a kernel of any size has no tails there.

Tails take other instructions, and keep some equalities from holding: where all sizes are multiples of their tiles, a kernel may
be much faster, and it is the same one for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm

from tile_eg.ir.index import Expr
from tile_eg.ir.sizes import sizes_in
from tile_eg.ir.values import Values, reachable
from tile_eg.transforms.deeper_trips import loops_by_sizes

DEEPER = 4
"""Trips of a loop of products that sizes decide which go as one: their tiles are whole, too."""
MOST = 1024
"""The largest number of which a size may have to be a multiple: hardly a size is one of a larger one."""


def whole_sizes(values: Values) -> dict[str, int]:
    """Of each size that is cut into tiles the number that it has to be a multiple of; none where that is too large."""
    assert values.sizes is not None
    found = dict.fromkeys(values.sizes.names, 1)
    depths = dict.fromkeys(values.sizes.names, 1)
    trips = [values.counts[loop.args[0]] for loop in loops_by_sizes(values)]
    for e in (*values.sizes.grid, *values.counts.values(), *_extents(values)):
        for name, edge in _cuts(e):
            found[name] = lcm(found[name], edge)
            if e in trips:
                depths[name] = DEEPER
    for e in values.sizes.grid:
        depths |= dict.fromkeys((name for name, _ in _cuts(e)), 1)
    by = {name: edge * depths[name] for name, edge in found.items() if edge > 1}
    return by if max(by.values(), default=1) <= MOST else {}


def _extents(values: Values) -> Iterator[Expr]:
    """How much of a tile is there, where sizes decide it."""
    for t in reachable(values):
        yield from (e for e in (t.vrows, t.vcols) if e is not None and sizes_in(e))


def _cuts(e: Expr) -> Iterator[tuple[str, int]]:
    """The sizes that are divided by a number in an expression, or of which at most so much is taken at a time."""
    if e.op == "div" and e.args[1].value:
        yield from ((s.args[0], e.args[1].args[0]) for s in sizes_in(e.args[0]))
    elif e.op == "min" and (most := next((a.value for a in e.args if a.value), None)):
        yield from ((s.args[0], most) for a in e.args if a.op == "add" for s in a.args if s.op == "size")
    for a in e.args:
        if isinstance(a, Expr):
            yield from _cuts(a)
