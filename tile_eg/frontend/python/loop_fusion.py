"""Two loops, one of which stores the windows of a tensor that the other one loads, trip by trip, as one loop.

The equality: where trip k of the second loop loads what trip k of the first stored, no other trip stores there, and the loops
have nothing else in common, trip k of the second may follow trip k of the first at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile_eg.frontend.python.temporaries import uses_of
from tile_eg.frontend.python.tile_loops import substituted
from tile_eg.frontend.python.values import nodes
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, terms_of, variables
from tile_eg.ir.kernel import Alloc, Assign, For, If, Region, Stmt


def fused(body: Sequence[Stmt], tensor: str) -> tuple[Stmt, ...]:
    """The statements in which loops that hand on windows of the tensor are one; as they are where there is no such form."""
    done = [_inside(s, tensor) for s in body]
    while (pair := _pair(done, tensor)) is not None:
        first, second = pair
        one, other = done[first], done[second]
        assert isinstance(one, For) and isinstance(other, For)
        later = substituted(other.body, {other.var: ix.var(one.var)})
        allocs = [s for s in done[first + 1 : second] if isinstance(s, Alloc)]
        between = [s for s in done[first + 1 : second] if not isinstance(s, Alloc)]
        joined = replace(other, var=one.var, body=(*one.body, *later), stages=max(one.stages, other.stages))
        done[first : second + 1] = [*allocs, *between, joined]
    return tuple(done)


def _inside(s: Stmt, tensor: str) -> Stmt:
    match s:
        case For():
            return replace(s, body=fused(s.body, tensor))
        case If():
            return replace(s, then=fused(s.then, tensor), otherwise=fused(s.otherwise, tensor))
    return s


def _pair(body: Sequence[Stmt], tensor: str) -> tuple[int, int] | None:
    """The first two loops that can be one."""
    loops = [n for n, s in enumerate(body) if isinstance(s, For) and uses_of(s)[tensor]]
    for first, second in zip(loops, loops[1:], strict=False):
        if _as_one(body[first], body[second], body[first + 1 : second], tensor):  # type: ignore[arg-type]
            return first, second
    return None


def _as_one(one: For, other: For, between: Sequence[Stmt], tensor: str) -> bool:
    alike = (one.start, one.extent, one.count) == (other.start, other.extent, other.count)
    if not alike or one.count is not None or not _apart(one, between, "") or not _apart(one, (other,), tensor):
        return False
    stored = _windows(one.body, tensor)
    loaded = _windows(substituted(other.body, {other.var: ix.var(one.var)}), tensor)
    places = {(r.starts, r.extents) for r in (*stored, *loaded)}
    inner = {s.var for loop in (one, other) for s in nodes(loop.body) if isinstance(s, For)}
    if len(places) != 1 or any(variables(x) & inner for r in stored for x in r.starts):
        return False
    return any(_moves_on(s, e, one.var) for s, e in zip(stored[0].starts, stored[0].extents, strict=True))


def _windows(body: tuple[Stmt, ...], tensor: str) -> list[Region]:
    return [r for r in nodes(body) if isinstance(r, Region) and r.name == tensor]


def _moves_on(start: Expr, extent: int | None, variable: str) -> bool:
    """Whether the windows of two trips lie apart."""
    terms: Mapping[Expr, int] = terms_of(start)
    alone = all(variable not in variables(k) for k in terms if k != ix.var(variable))
    return alone and abs(terms.get(ix.var(variable), 0)) >= (extent or 1)


def _apart(one: For, others: Sequence[Stmt], but: str) -> bool:
    """Whether neither writes what the other uses, `but` aside."""
    written = [{s.target.name for s in nodes(tuple(b)) if isinstance(s, Assign)} - {but} for b in ((one,), others)]
    used = [set(uses_of(tuple(b))) - {but} for b in ((one,), others)]
    return not (written[0] & used[1] or written[1] & used[0])
