"""Kernels in which rows or elements are done one by one, or an index is read: whether the search has a form for them shows only
once they are values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from tile_eg.errors import NotSearched, TileError, attempted
from tile_eg.frontend.checks import check
from tile_eg.frontend.python.guards import with_guards_as_loops
from tile_eg.frontend.python.values import nodes
from tile_eg.ir.index import Expr, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import For, If, Index, Kernel, Region, Stmt

if TYPE_CHECKING:
    from tile_eg.ir.values import Values


def searched(kernel: Kernel, unique: Callable[[str], str]) -> Kernel | NotSearched:
    """The kernel, or one that is equal to it; or why the search has no form for it, where that is all that is wrong with it.
    `unique` gives names to variables."""
    branches = any(isinstance(s, If) for s in nodes(kernel.body))
    if not branches and not any(_one_by_one(kernel.body, frozenset(), {t.name for t in kernel.tensors})):
        return kernel
    found = attempted(lambda: _values(kernel))
    told = (found, *found.others) if isinstance(found, TileError) else ()
    unknown = [e for e in told if isinstance(e, NotSearched)]
    if not unknown or len(unknown) < len(told):
        return kernel
    guarded = with_guards_as_loops(kernel, unique)
    return unknown[0] if guarded == kernel or isinstance(attempted(lambda: _values(guarded)), TileError) else guarded


def _values(kernel: Kernel) -> Values:
    from tile_eg.frontend.ssa import to_values

    check(kernel)
    return to_values(kernel)


def _one_by_one(body: tuple[Stmt, ...], loops: frozenset[str], tensors: Collection[str]) -> Iterator[bool]:
    """Of each window and index in a body, whether it is read, or a window of a buffer that a loop's variable places."""
    for s in body:
        match s:
            case For():
                yield from _one_by_one(s.body, loops | {s.var}, tensors)
            case If():
                yield from _one_by_one((*s.then, *s.otherwise), loops, tensors)
            case _:
                for n in nodes(s):
                    own = isinstance(n, Region) and n.name not in tensors
                    yield any(elements_in(e) or (own and variables(e) & loops) for e in _places(n))


def _places(node: Any) -> tuple[Expr, ...]:
    """The indices of a node, and those that are values in it."""
    return node.starts if isinstance(node, Region) else (node.value,) if isinstance(node, Index) else ()
