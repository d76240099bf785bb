"""Buffers of L0 into which tiles are copied the other way round: here they hold them as they are, and products turn them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tile_eg.errors import Span
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Alloc, Region, Stmt


def with_shapes(body: Sequence[Stmt], turned: set[str]) -> tuple[Stmt, ...]:
    """The statements with the last two dimensions of these buffers exchanged."""
    return _exchanged(tuple(body), turned)


def _exchanged(tree: Any, turned: set[str]) -> Any:
    match tree:
        case Alloc() if tree.name in turned:
            return replace(tree, shape=_last_two(tree.shape))
        case Region() if tree.name in turned:
            return replace(tree, starts=_last_two(tree.starts), extents=_last_two(tree.extents))
        case tuple():
            return tuple(_exchanged(part, turned) for part in tree)
        case Expr() | Span():
            return tree
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **{f.name: _exchanged(getattr(tree, f.name), turned) for f in fields(tree)})
    return tree


def _last_two(items: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*items[:-2], items[-1], items[-2])
