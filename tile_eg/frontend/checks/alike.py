"""What of a block's index a stored value depends on: blocks in which that is the same store equal values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

from tile_eg.frontend.liveness import reads
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in


def parts_of_block(kernel: kn.Kernel, indices: Iterable[Expr]) -> frozenset[Expr]:
    """The parts of index expressions that are made of the grid's variables alone, the largest ones."""
    grid = {name for name, _ in kernel.grid}
    return frozenset(part for e in indices for part in _parts(e, grid))


def _parts(e: Expr, grid: set[str]) -> Iterator[Expr]:
    names = ix.variables(e)
    if not names & grid:
        return
    if names <= grid and not all_elements_in(e):
        yield e
        return
    for a in e.args:
        if isinstance(a, Expr):
            yield from _parts(a, grid)


def made_of(kernel: kn.Kernel, store: kn.Assign) -> frozenset[Expr] | None:
    """The parts of the block's index that a stored value depends on; None where it depends on what the kernel writes to tensors,
    which other blocks may write as well."""
    written = {t.name for t in kernel.tensors if t.output}
    statements = list(in_context(kernel.body, ()))
    todo = [(s, context) for s, context in statements if s is store]
    indices, seen = set[Expr](), set[str]()
    while todo:
        s, context = todo.pop()
        own = {*context, *_indices(s.value), *s.target.starts}
        indices |= own
        for name in sorted((reads(s.value) | {r.args[0] for e in own for r in all_elements_in(e)}) - seen):
            if name in written:
                return None
            seen.add(name)
            todo += [(t, around) for t, around in statements if t.target.name == name]
    return parts_of_block(kernel, indices)


def in_context(body: tuple[kn.Stmt, ...], context: tuple[Expr, ...]) -> Iterator[tuple[kn.Assign, tuple[Expr, ...]]]:
    """Every assignment, with the conditions and the numbers of trips around it."""
    for s in body:
        match s:
            case kn.Assign():
                yield s, context
            case kn.For():
                yield from in_context(s.body, context if s.count is None else (*context, s.count))
            case kn.Parallel():
                yield from in_context(s.body, context)
            case kn.If():
                yield from in_context((*s.then, *s.otherwise), (*context, s.condition))


def _indices(e: kn.TileExpr) -> Iterator[Expr]:
    """The index expressions in a value."""
    for f in fields(e):
        part = getattr(e, f.name)
        if isinstance(part, Expr):
            yield part
        elif isinstance(part, tuple):
            yield from (x for x in part if isinstance(x, Expr))
        elif isinstance(part, kn.TileExpr):  # type: ignore[misc,arg-type]
            yield from _indices(part)
