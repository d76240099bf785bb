"""Loops in which each block takes tiles as long as there are some: `for i in ...: tile = i * blocks + cid; if tile < tiles: ...`.

As no tile knows of another, they are the blocks of a grid of so many tiles; which core takes which, and how many, is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.ranges import MAX_POINTS
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, variables
from tile_eg.ir.kernel import Assign, For, If, Kernel


def tiles_as_grid(kernel: Kernel) -> Kernel:
    """The kernel whose last statement is such a loop as one on all its tiles; any other kernel as it is.

    TileError where a buffer goes on from tile to tile.
    """
    match (kernel.grid, kernel.body[-1:]):
        case (((block, blocks),), (For(start=0, count=None, body=(If(otherwise=()) as guard,)) as loop,)):
            tiles = _tiles(guard.condition, block, blocks, loop)
            if tiles:
                return _on_grid(kernel, loop, guard, tiles)
    return kernel


def _tiles(condition: Expr, block: str, blocks: int, loop: For) -> int:
    """How many tiles there are: trip by trip, the blocks for which the condition holds come first. 0: they do not."""
    if variables(condition) != {block, loop.var} or blocks * loop.extent > MAX_POINTS:
        return 0
    holds = [bool(ix.evaluate(condition, {block: t % blocks, loop.var: t // blocks})) for t in range(blocks * loop.extent)]
    count = sum(holds)
    return count if all(holds[:count]) else 0


def _on_grid(kernel: Kernel, loop: For, guard: If, tiles: int) -> Kernel:
    ((block, blocks),) = kernel.grid
    before = kernel.body[:-1]
    written = [{s.target.name for s in nodes(part) if isinstance(s, Assign)} for part in (before, guard.then)]
    if carried := written[0] & written[1]:
        name = min(carried)
        message = f"`{name}` goes on from tile to tile, and tiles that blocks take in turn have no order"
        raise TileError(message, loop.span, help=f"fill {name} inside the loop")
    tile = ix.var(block)
    body = substituted((*before, *guard.then), {block: tile % blocks, loop.var: tile // blocks})
    return replace(kernel, grid=((block, tiles),), body=body)


def substituted(tree: Any, env: Mapping[str, Expr]) -> Any:
    """A tree of statements with variables of its index expressions replaced."""
    if isinstance(tree, Expr):
        return ix.substitute(tree, env)
    if isinstance(tree, tuple):
        return tuple(substituted(part, env) for part in tree)
    if is_dataclass(tree) and not isinstance(tree, type | Span):
        return replace(tree, **{f.name: substituted(getattr(tree, f.name), env) for f in fields(tree)})
    return tree
