"""Rings with fewer ids than slots: an id is free again once its flag was waited for, before the slot's place comes round.

Two forms of an edge wait for no more than it does. A tile is waited for where it is read first: so it needs as many ids as loads
may run ahead, and trip n of a ring has the id n mod that number at both ends. A place is free some trips before it is filled
again: outside of the guards of both ends, a flag is set in every step of the loop and waited for as many steps later. Steps in
which nothing is filled may need the flag of the tile outside of its guards, too, so that neither pipe goes on alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tile_eg.emit.sync.edges import Edge, Stream
from tile_eg.emit.sync.trace import Path
from tile_eg.ir.index import Expr, evaluate, var, variables
from tile_eg.ir.program import Loop, Tasks

Changed = Mapping[int, Edge]


def with_fewer(s: Stream, edges: Sequence[Edge], n: int) -> Iterator[Changed]:
    """What edge `n` of a ring, and another one with it, may become so that it has fewer ids; the first is the best."""
    e = edges[n]
    if e.ids == 1 or e.turns or e.outer:
        return
    if not e.before:
        yield from ({n: made} for ids in range(1, e.ids) if (made := _of_trips(s, e, ids)))
        return
    filled = [m for m, f in enumerate(edges) if f.ids > 1 and (f.core, f.set_at) == (e.core, ("post", e.wait_at[1]))]
    for ids in range(_apart(s, e), 0, -1):
        made = _of_steps(s, e, ids)
        if made:
            yield {n: made}
            yield from ({n: made, m: f} for m in filled for k in range(1, edges[m].ids) if (f := _of_steps(s, edges[m], k)))


def _of_trips(s: Stream, e: Edge, ids: int) -> Edge | None:
    """With n mod fewer ids for trip n, where both ends say the trip."""
    ends = [_modulo(x, e.ids, ids) for x in (e.set_id, e.wait_id)]
    return s.completed(replace(e, ids=ids, set_id=ends[0], wait_id=ends[1])) if ends[0] and ends[1] else None


def _modulo(slot: Expr, slots: int, ids: int) -> Expr | None:
    """The id of a slot's trip; None where the slot is no remainder."""
    if slot.op != "mod" or slot.args[1].value != slots:
        return None
    trip: Expr = slot.args[0]
    return trip % ids


def _of_steps(s: Stream, e: Edge, ids: int) -> Edge | None:
    """With a flag in each step of the loop around both ends, outside of their guards."""
    found = _ends(s, e)
    if not found:
        return None
    loop, p, c = found
    at = var(loop) % ids
    return s.completed(replace(e, set_at=("post", p), wait_at=("pre", c), ids=ids, set_id=at, wait_id=at))


def _ends(s: Stream, e: Edge) -> tuple[str, Path, Path] | None:
    """The variable of the innermost loop around both ends, and what stands for each in its body."""
    (_, p), (_, c) = e.set_at, e.wait_at
    common = next((n for n, (a, b) in enumerate(zip(p, c, strict=False)) if a != b), 0)
    loop = s.along(p[:common])[-1] if common else None
    if not isinstance(loop, Loop) or isinstance(loop, Tasks):
        return None
    return loop.var, p[: common + 1], c[: common + 1]


def _apart(s: Stream, e: Edge) -> int:
    """The steps from a slot's reader to its next filling; 0 where that is not known."""
    found = _ends(s, e)
    if not found or any(variables(x) != {found[0]} for x in (e.set_id, e.wait_id)):
        return 0
    at = ({found[0]: n} for n in range(e.ids, 2 * e.ids))
    apart = {(evaluate(e.set_id, env) - evaluate(e.wait_id, env)) % e.ids for env in at}
    return apart.pop() if len(apart) == 1 else 0
