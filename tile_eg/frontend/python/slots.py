"""Buffers with a leading dimension of slots, `a[k % 2, :, :]`: how many tiles are held at a time is found, so that one is meant.

Where each trip of a loop uses one slot alone, and fills it before it reads it, what other slots hold is never seen: the buffer is
a tile of the trip. The ring that it is kept in has as many slots as the search finds best, or `num_stages` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tile_eg.frontend.python.merging import uses_of
from tile_eg.frontend.python.values import nodes
from tile_eg.ir.index import ZERO, Expr, var, variables
from tile_eg.ir.kernel import Alloc, Assign, For, If, Parallel, Region, Stmt, Whole, exchanged


def without_slots(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements with such buffers as tiles; others stay as they are."""
    found = tuple(body)
    loops = [s for s in nodes(found) if isinstance(s, For)]
    for alloc in [s for s in nodes(found) if isinstance(s, Alloc) and len(s.shape) > 1]:
        filling = [loop for loop in loops if _fills_its_slot(loop, alloc)]
        outer = [loop for loop in filling if not any(loop is s for other in filling for s in nodes(other.body))]
        if outer and sum(uses_of(loop.body)[alloc.name] for loop in outer) == uses_of(found)[alloc.name]:
            found = tuple(as_tile(found, alloc.name))
    return found


def _slot(body: tuple[Stmt, ...], name: str) -> Expr | None:
    """The slot that all statements use, which varies; None where they use several."""
    used = {(r.starts[0], r.extents[0]) for r in nodes(body) if isinstance(r, Region) and r.name == name}
    (slot, extent), *others = used or {(ZERO, 1)}
    return slot if not others and extent is None and slot.op == "mod" else None


def _fills_its_slot(loop: For, alloc: Alloc) -> bool:
    """Whether a loop's trips choose the one slot that they use, and each fills it first."""
    slot = _slot(loop.body, alloc.name)
    if slot is None or loop.var not in variables(slot):
        return False
    first = _first(loop.body, alloc.name)
    match first:
        case Assign():
            return first.target.name == alloc.name and first.target.extents == (None, *alloc.shape[1:])
        case Parallel():
            whole = (slot, *map(var, first.vars))
            written = [(s.target.name, s.target.starts) for s in first.body]
            return first.extents == alloc.shape[1:] and (alloc.name, whole) in written
    return False


def _first(body: tuple[Stmt, ...], name: str) -> Stmt | None:
    """The first statement that uses a buffer, in a branch that all its uses stand in; None where it uses it twice."""
    first = next(s for s in body if name in uses_of(s))
    if isinstance(first, If) and not first.otherwise and uses_of(first.then)[name] == uses_of(body)[name]:
        return _first(first.then, name)
    return first if uses_of(first)[name] == 1 else None


def with_open_slots(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements with as many slots of each buffer as the search finds."""
    return exchanged(body, lambda s: [replace(s, slots=0)] if isinstance(s, Alloc) else None)


def as_tile(body: Sequence[Stmt], name: str) -> Iterator[Stmt]:
    """The statements with one slot of a buffer for all of it."""
    for s in body:
        match s:
            case Alloc() if s.name == name:
                yield replace(s, shape=s.shape[1:], slots=s.shape[0])
            case For() | Parallel():
                yield replace(s, body=tuple(as_tile(s.body, name)))  # type: ignore[arg-type]
            case If():
                yield replace(s, then=tuple(as_tile(s.then, name)), otherwise=tuple(as_tile(s.otherwise, name)))
            case Assign():
                yield replace(s, target=_unslotted(s.target, name), value=_unslotted(s.value, name))
            case _:
                yield s


def _unslotted(e, name: str):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    if isinstance(e, Region):
        return replace(e, starts=e.starts[1:], extents=e.extents[1:]) if e.name == name else e
    if isinstance(e, Whole):
        return replace(e, xs=tuple(_unslotted(x, name) for x in e.xs))
    parts = {f: _unslotted(getattr(e, f), name) for f in ("a", "b", "x", "y") if hasattr(e, f)}
    return replace(e, **parts) if parts else e
