"""A kernel with flags, barriers, addresses and scopes, read as one that has none of them: as a sequential program over tiles."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, NoReturn

from tile_eg.errors import Span, TileError
from tile_eg.frontend.python.expressions import evaluate
from tile_eg.frontend.python.function import read
from tile_eg.frontend.python.placement_words import LEVELS
from tile_eg.frontend.python.slots import with_open_slots
from tile_eg.frontend.python.source import Source
from tile_eg.frontend.python.statements import RULES
from tile_eg.frontend.python.values import Loop, NewBuffer
from tile_eg.frontend.python.written_out import has_own_trips
from tile_eg.frontend.sequential.addresses import check_shared_addresses
from tile_eg.frontend.sequential.order import in_one_order, stream_of
from tile_eg.frontend.sequential.owners import Owners
from tile_eg.frontend.sequential.parts import KEPT, Scoped, allocations, marks, plain
from tile_eg.frontend.sequential.placed import Placed
from tile_eg.frontend.sequential.prefetched import without_prefetch
from tile_eg.frontend.sequential.turned import with_shapes
from tile_eg.frontend.sequential.words import WORDS, Scope
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Kernel, Stmt
from tile_eg.ir.program import AIC, AIV
from tile_eg.language.kernels import PrimFunc


def sequential_kernel(function: PrimFunc, sizes: Mapping[str, Any], meet: bool = False) -> Kernel:
    """The kernel of a prim_func at sizes, without what its author says of its order, places and meetings.

    `meet`: the cores of a kernel without flags between them meet where one needs what another has stored, in the order of the
    statements. TileError where there is no such kernel: two statements that no order suits, or a form that is not searched.
    """
    try:
        found = read(function, sizes, reader_of=lambda *how: SequentialReader(*how, meet=meet))
    except TileError as e:
        if e.help != KEPT:
            e.notes = (*e.notes, (f"the kernel is read without its flags, barriers and scopes; {KEPT}", None))
        raise
    return found if isinstance(found, Kernel) else _refuse(found.why)


def _refuse(why: TileError) -> NoReturn:
    """Raises that a kernel has no form without its flags."""
    message = f"without its flags this kernel has no form that the search knows: {why.message}"
    error = TileError(message, why.span, notes=why.notes, help=KEPT)
    error.source = why.source
    raise error from why


class SequentialReader(Placed):
    """Reads scopes and marks, and puts what it has read in one order. `meet`: in that of the statements. `tiles` is
    the loop over all tiles that has been read, behind which only flags may stand."""

    def __init__(self, source: Source, names: Mapping[str, Any], sizes: Mapping[str, Any] | None = None, *, meet: bool) -> None:
        super().__init__(source, names, sizes)
        self.handlers, self.meet = WORDS, meet
        self.tiles: ast.For | None = None

    def rules(self) -> dict[type, Any]:
        return {**RULES, ast.With: _with}

    def allocate(self, name: str, new: NewBuffer, span: Span | None) -> None:
        if new.scope not in LEVELS:
            return super().allocate(name, new, span)
        super().allocate(name, NewBuffer(LEVELS[new.scope], new.dtype, new.shape, new.column), span)
        self.levels[self.local[name].name] = new.scope
        return None

    def bind(self, name: str, value: Any, span: Span | None) -> None:
        """A number that is computed anew in a loop or branch is that one there, and what it was behind it."""
        plain_number = isinstance(value, Expr | int) and not isinstance(value, bool)
        if plain_number and name in self.outer and isinstance(self.outer[name], Expr | int):
            self.local[name] = value
            return
        super().bind(name, value, span)

    def has_own_trips(self, node: ast.For, loop: Loop) -> bool:
        """A name that a trip binds anew (`cid = i * 20 + cid`) begins in each trip as what it is before the loop."""
        bound = {n: v for n, v in self.local.items() if not isinstance(v, Expr)}
        return has_own_trips(node, loop, bound)

    def check_last(self, node: ast.For) -> None:
        if self.outer or self.tiles is not None:
            super().check_last(node)

    def statement(self, node: ast.stmt) -> None:
        written, behind = len(self.writes), self.tiles
        super().statement(node)
        if behind is not None and len(self.writes) > written:
            super().check_last(behind)
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func).endswith("Persistent"):
            self.tiles = node

    def plain(self) -> list[Stmt]:
        return [*plain(self.statements)]

    def finished(self) -> list[Stmt]:
        """The statements in one order, without flags."""
        body, scoped = self.statements, any(isinstance(n, Scoped) for n in _all(self.statements))
        if self.told or not scoped or (self.meet and not any(True for _ in marks(body))):
            return [*_turned(self, plain(body))]
        allocs = list(allocations(body))
        owner = Owners(self.levels, tuple(plain(body))).of
        streams = {core: tuple(stream_of(body, core, owner, self.alike)) for core in (AIC, AIV)}
        half = ix.text(self.half) if self.half is not None else None
        written = frozenset(self.writes) - {a.name for a in allocs}
        ordered = in_one_order(streams, self.grid, written, half)
        return [*_turned(self, (*allocs, *plain(ordered)))]

    def settled(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements without what is loaded a trip ahead, and without the author's slots. TileError where one buffer is read
        by the name of another."""
        half = {} if self.half is None else {ix.text(self.half): (0, 1)}
        blocks = {**self.grid, **half}
        check_shared_addresses(body, self.addresses, self.levels, blocks)
        return with_open_slots(without_prefetch(body, blocks))


def _all(nodes: Any) -> Any:
    for n in nodes:
        yield n
        for part in ("body", "then", "otherwise"):
            inner = getattr(n, part, ())
            yield from _all(inner if isinstance(inner, tuple) else ())


def _turned(r: SequentialReader, body: Any) -> Any:
    """Buffers that hold their tile the other way round get the shape of what they hold."""
    return with_shapes(tuple(body), r.turned) if r.turned else body


def _with(r: SequentialReader, node: ast.With) -> None:
    scopes = [evaluate(r, item.context_expr) for item in node.items]
    if len(scopes) != 1 or not isinstance(scopes[0], Scope):
        raise r.error('inside a kernel, `with` stands before T.Scope("C") and T.Scope("V")', node)
    if r.core is not None:
        raise r.error("a scope inside of a scope", node, "each core has a scope of its own, one behind the other")
    outside, r.core, r.statements = r.statements, scopes[0].core, []
    try:
        r.run(node.body)
        outside.append(Scoped(r.core, tuple(r.statements), r.span(node)))  # type: ignore[arg-type]
    finally:
        r.statements, r.core = outside, None
