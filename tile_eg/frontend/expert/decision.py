"""Whether a kernel is kept as its author wrote it, or searched: decided here alone, from the words that it uses."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tile_eg import language
from tile_eg.errors import InOrder, TileError, attempted, searchable
from tile_eg.frontend.python.source import read_function
from tile_eg.language.kernels import Macro, PrimFunc
from tile_eg.language.words import Word

if TYPE_CHECKING:
    from tile_eg.ir.kept import KeptKernel
    from tile_eg.ir.kernel import Kernel

KEEPING = frozenset(
    (
        "Scope", "set_flag", "wait_flag", "pipe_barrier", "barrier_all", "sync_all", "set_cross_flag", "wait_cross_flag",
        "annotate_address", "rs", "sync_block_set", "sync_block_wait",
    )
)  # fmt: skip
"""A flag, a barrier, a flag between cores, an address, a scope: who writes one has decided the order of the instructions."""


def is_kept(function: PrimFunc) -> bool:
    """Whether the kernel, or a macro or function that it calls, uses one of the words that keep it."""
    return any(_keeps(value) for value in _used(function.function, function.names, set()))


def searched_or_in_order(
    function: PrimFunc, build: Callable[[Mapping[str, Any]], Kernel | InOrder], streams: bool = False
) -> Callable[[Mapping[str, Any]], Kernel | KeptKernel]:
    """What gives the kernel of a prim_func at sizes: as `build` does, or done in order where that says so.

    `streams`: where a core reads what the other one writes further down, each of them does its own statements in order.
    """

    def make(sizes: Mapping[str, Any]) -> Kernel | KeptKernel:
        found = build(sizes)
        if not isinstance(found, InOrder):
            return found
        try:
            return in_order(function, sizes, found.why, streams)
        except TileError:
            if found.searched is None:
                raise
            return searchable(found)

    return make


def in_order(function: PrimFunc, sizes: Mapping[str, Any] | None, why: TileError, streams: bool) -> KeptKernel:
    """A kernel without flags of its own, done in the order of its statements, since the search cannot, as `why` tells."""
    from tile_eg.frontend.expert import kernel

    return kernel.in_order(function, sizes, why, streams)


def _keeps(value: Any) -> bool:
    return isinstance(value, Word) and value.name in KEEPING


def _used(function: FunctionType, names: Mapping[str, Any] | None, seen: set[FunctionType]) -> Iterator[Any]:
    """What the names and attributes in a function stand for, those of functions that it calls included."""
    seen.add(function)
    found = attempted(lambda: read_function(function, names))
    if isinstance(found, TileError):
        return
    for node in ast.walk(found.node):
        value = _value(node, found.names)
        yield value
        inner = value.function if isinstance(value, Macro) else value
        if isinstance(inner, FunctionType) and inner not in seen and not (inner.__module__ or "").startswith("tile_eg."):
            yield from _used(inner, None, seen)


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and names.get(node.value.id) is language:
        return getattr(language, node.attr, None)
    return None
