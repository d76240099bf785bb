"""What stands between the statements of a kernel that is read without its flags, until they are in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Alloc, For, If, Stmt
from tile_eg.ir.program import AIC
from tile_eg.ops.records import record

KEPT = "leave `schedule` out: the kernel is then done as it is written"
"""The way out where a kernel has no sequential meaning."""


@record
class Scoped:
    """What stands in the scope of one kind of core."""

    core: str
    body: tuple[Any, ...]
    span: Span | None = None


@record
class Done:
    """A statement, and the kind of core that does it."""

    core: str
    statement: Stmt


@record
class Mark:
    """A flag between cores: a kind of core sets it for the other one, or waits for what the other one sets."""

    waits: bool
    number: Expr
    core: str | None
    pipe: str = ""
    span: Span | None = None


Node = Any
"""A statement, or one of the above; loops and branches may hold such."""


def unordered(message: str, span: Span | None, notes: tuple[tuple[str, Span | None], ...] = ()) -> TileError:
    return TileError(f"without its flags this kernel has no sequential meaning: {message}", span, notes=notes, help=KEPT)


def name_of(core: str) -> str:
    return "the cube core" if core == AIC else "the vector cores"


def does(core: str, verb: str) -> str:
    """What a core, or two of them, do: `the cube core waits`, `the vector cores wait`."""
    if core == AIC:
        verb = {"have": "has"}.get(verb, verb + "s")
    return f"{name_of(core)} {verb}"


def marks(tree: Node | Sequence[Node]) -> Iterator[Mark]:
    """The flags in a node, or in nodes."""
    if isinstance(tree, Mark):
        yield tree
    elif isinstance(tree, tuple | list):
        for n in tree:
            yield from marks(n)
    elif isinstance(tree, For | Scoped):
        yield from marks(tree.body)
    elif isinstance(tree, If):
        yield from marks((*tree.then, *tree.otherwise))


def plain(nodes: Sequence[Node], keep: Callable[[Stmt], bool] = lambda s: True) -> Iterator[Stmt]:
    """The statements alone; loops and branches in which none is left are gone."""
    for n in nodes:
        match n:
            case Mark():
                continue
            case Done():
                yield n.statement
            case Scoped():
                yield from plain(n.body, keep)
            case For():
                if body := tuple(plain(n.body, keep)):
                    yield replace(n, body=body)
            case If():
                then, otherwise = (tuple(plain(arm, keep)) for arm in (n.then, n.otherwise))
                if then or otherwise:
                    yield replace(n, then=then, otherwise=otherwise)
            case _ if keep(n):
                yield n


def allocations(nodes: Sequence[Node]) -> Iterator[Alloc]:
    for n in nodes:
        match n:
            case Alloc():
                yield n
            case For() | Scoped():
                yield from allocations(n.body)
            case If():
                yield from allocations((*n.then, *n.otherwise))
