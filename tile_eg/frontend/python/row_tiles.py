"""Loops whose trips each make one row of a tensor, by buffers of their own, as statements on tiles of all the rows.

The equality: where a trip of `for r in n` fills all vectors that it uses before it reads them, and what it stores to tensors is
row `r0 + r`, the trips do not know of each other. Each vector becomes a tile with a row a trip, and each statement is done for
all rows before the next one; loops in the trip, which run alike in all of them, go outside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tile_eg.frontend.python.temporaries import temporaries, uses_of
from tile_eg.frontend.python.values import nodes
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import (
    Alloc,
    Assign,
    Binary,
    Broadcast,
    Bytes,
    Cast,
    Choose,
    For,
    If,
    Index,
    MatMul,
    Number,
    Pack,
    Parallel,
    Reduce,
    Region,
    Scaled,
    Select,
    Stmt,
    TileExpr,
    Unary,
    exchanged,
)


class _NoRows(Exception):
    """The trips are no rows of tiles."""


def rows_of_tensor(body: tuple[Stmt, ...], tensor: str) -> tuple[Stmt, ...]:
    """The statements in which loops that store one row of the tensor in each trip are done on tiles of rows; as they are where
    there is no such form."""
    for loop in [s for s in nodes(body) if isinstance(s, For)]:
        if any(isinstance(s, Assign) and s.target.name == tensor and _picks_row(s.target, loop.var) for s in nodes(loop.body)):
            body = _with_tiles(body, loop)
    return body


def _picks_row(r: Region, variable: str) -> bool:
    """Whether a window is a row, and the variable says which one."""
    return len(r.shape) == 1 and _row_axis(r, variable) is not None


def _row_axis(r: Region, variable: str) -> int | None:
    found = [d for d, s in enumerate(r.starts) if variable in variables(s)]
    if len(found) != 1 or r.extents[found[0]] is not None:
        return None
    start = r.starts[found[0]]
    rest = start - ix.var(variable)
    return None if variable in variables(rest) or elements_in(start) else found[0]


def _with_tiles(body: tuple[Stmt, ...], loop: For) -> tuple[Stmt, ...]:
    buffers = {s.name: s for s in nodes(body) if isinstance(s, Alloc)}
    shapes = {name: b.shape for name, b in buffers.items()}
    written = {s.target.name for s in nodes(loop.body) if isinstance(s, Assign)} & buffers.keys()
    own = temporaries(loop, shapes, uses_of(body))
    counted = loop.start or loop.count is not None or loop.extent < 1
    if counted or written != own or any(len(shapes[n]) != 1 for n in own) or not _stores_rows(loop, shapes):
        return body
    try:
        done = tuple(_Rows(loop, own, shapes).block(loop.body))
    except _NoRows:
        return body
    return exchanged(body, lambda s: _exchanged(s, loop, done, own))


def _of_elements(s: For) -> bool:
    """Whether a loop does nothing but assign elements."""
    return all(isinstance(a, Assign) and not a.target.shape for a in s.body)


def _stores_rows(loop: For, buffers: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether each trip stores one row of each tensor that it writes, the same in all its stores, and reads none of these."""
    stores = [s.target for s in nodes(loop.body) if isinstance(s, Assign) and s.target.name not in buffers]
    uses, stored = uses_of(loop.body), Counter(r.name for r in stores)
    alone = all(_picks_row(r, loop.var) and uses[r.name] == stored[r.name] for r in stores)
    return alone and len({(r.name, _row_axis(r, loop.var), r.starts[_row_axis(r, loop.var) or 0]) for r in stores}) == len(stored)


def _exchanged(s: Stmt, loop: For, instead: tuple[Stmt, ...], own: set[str]) -> Iterable[Stmt] | None:
    """What stands in the place of a statement, with others in that of a loop and a row a trip in its buffers."""
    if isinstance(s, Alloc) and s.name in own:
        return (_tile_of_rows(s, loop),)
    return instead if s is loop else None


def _tile_of_rows(s: Alloc, loop: For) -> Alloc:
    return replace(s, shape=(loop.extent, *s.shape))


@dataclass
class _Rows:
    """The statements of a loop on tiles with a row a trip; `own` are the vectors that become tiles."""

    loop: For
    own: set[str]
    shapes: Mapping[str, tuple[int, ...]]

    def block(self, body: Sequence[Stmt]) -> Iterator[Stmt]:
        for s in body:
            yield from self.statement(s)

    def statement(self, s: Stmt) -> Iterator[Stmt]:
        match s:
            case Alloc():
                yield _tile_of_rows(s, self.loop) if s.name in self.own else s
            case Assign():
                yield self.assign(s)
            case For() if _of_elements(s):
                rows = tuple(self.element_of_row(a) for a in s.body)  # type: ignore[arg-type]
                yield For(self.loop.var, 0, self.loop.extent, "serial", 0, (replace(s, body=rows),), s.span)
            case For() if s.count is None or self.loop.var not in variables(s.count):
                yield replace(s, body=tuple(self.block(s.body)))
            case Parallel():
                rows = tuple(self.element_of_row(a) for a in s.body)
                yield Parallel((self.loop.var, *s.vars), (self.loop.extent, *s.extents), rows, s.span)
            case If() if self.loop.var not in variables(s.condition):
                arms = (tuple(self.block(arm)) for arm in (s.then, s.otherwise))
                yield replace(s, then=next(arms), otherwise=next(arms))
            case _:
                raise _NoRows

    def assign(self, s: Assign) -> Stmt:
        """A statement on tiles; one a row where its windows lie apart."""
        if s.atomic:
            raise _NoRows
        try:
            return replace(s, target=self.window(s.target), value=self.value(s.value))
        except _NoRows:
            row = replace(s, target=self.row(s.target), value=self.changed(s.value, self.row))
            return For(self.loop.var, 0, self.loop.extent, "serial", 0, (row,), s.span)

    def value(self, e: TileExpr) -> TileExpr:
        match e:
            case Number():
                return e
            case Index() if self.loop.var not in variables(e.value):
                return e
            case Region() if e.name in self.shapes and e.name not in self.own and len(e.shape) == 1:
                if any(self.loop.var in variables(x) for x in e.starts):
                    raise _NoRows
                return Broadcast(e, 0, e.span)
            case Region():
                return self.window(e)
            case Unary() | Cast() | Bytes():
                return replace(e, x=self.value(e.x))
            case Binary():
                return replace(e, x=self.value(e.x), y=self.value(e.y))
            case Select() if self.loop.var not in variables(e.condition):
                return replace(e, x=self.value(e.x), y=self.value(e.y))
            case Choose() if e.op != "bit":
                return replace(e, a=self.value(e.a), b=self.value(e.b), x=self.value(e.x), y=self.value(e.y))
        raise _NoRows

    def window(self, r: Region) -> Region:
        """The window of a trip as that of all trips."""
        if any(r.counts):
            raise _NoRows
        if r.name in self.own:
            if r.starts != (ZERO,) or r.extents != self.shapes[r.name]:
                raise _NoRows
            return replace(r, starts=(ZERO, ZERO), extents=(self.loop.extent, *self.shapes[r.name]))
        axis = _row_axis(r, self.loop.var)
        if axis is None or len(r.shape) != 1 or next(d for d, e in enumerate(r.extents) if e is not None) < axis:
            raise _NoRows
        starts = tuple(s - ix.var(self.loop.var) if d == axis else s for d, s in enumerate(r.starts))
        return replace(r, starts=starts, extents=tuple(self.loop.extent if d == axis else e for d, e in enumerate(r.extents)))

    def row(self, r: Region) -> Region:
        """The row of a tile in the place of a vector; a window of anything else as it is."""
        if r.name not in self.own:
            return r
        return replace(r, starts=(ix.var(self.loop.var), *r.starts), extents=(None, *r.extents))

    def element_of_row(self, a: Assign) -> Assign:
        if a.atomic:
            raise _NoRows
        return replace(a, target=self.row(a.target), value=self.changed(a.value, self.row))

    def changed(self, e: TileExpr, change) -> TileExpr:  # type: ignore[no-untyped-def] # noqa: ANN001
        """The value with its windows changed."""
        if isinstance(e, Region):
            return change(e)
        if isinstance(e, Reduce | MatMul | Scaled | Pack | Broadcast):
            raise _NoRows
        parts = {f: self.changed(getattr(e, f), change) for f in ("a", "b", "x", "y") if hasattr(e, f)}
        return replace(e, **parts) if parts else e  # type: ignore[arg-type]

