"""The order of tiles that `T.use_swizzle` gives: a permutation of them.

As no tile knows of another, which one a block takes when is found, so that the permuted index may stand for the plain one where
nothing else goes by that; else both are what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tile_eg.errors import Note, Span
from tile_eg.frontend.liveness import Liveness, assigned, buffer_shapes, mentioned
from tile_eg.frontend.python.tile_loops import substituted
from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.ranges import MAX_POINTS
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval
from tile_eg.ir.kernel import Alloc, Assign, For, If, Stmt
from tile_eg.ops.records import record


@record
class Bands:
    """The order of rows x cols tiles in bands of `offset` rows (`along` 0) or columns (1), each other band backwards."""

    rows: int
    cols: int
    offset: int
    along: int

    @property
    def tiles(self) -> int:
        return self.rows * self.cols

    def tile(self, i: Expr, inside: bool = False) -> Expr:
        """The i-th tile. An `i` that is none of the tiles' gives what CATLASS computes, unless it is known to be `inside`."""
        extent, other = (self.rows, self.cols) if self.along == 0 else (self.cols, self.rows)
        band, place = i // (self.offset * other), i % (self.offset * other)
        width = ix.minimum(self.offset, extent - band * self.offset) if inside else self._width(band, extent)
        down, there = band * self.offset + ix.mod(place, width), ix.div(place, width)
        across = there + (band % 2) * (other - 1 - there * 2)
        return down * self.cols + across if self.along == 0 else across * self.cols + down

    def _width(self, band: Expr, extent: int) -> Expr:
        """How wide a band is: the last one may be narrower."""
        last = -(-extent // self.offset) - 1
        is_last = ix.less(last - 1, band) * ix.less(band, last + 1)
        return self.offset - is_last * (self.offset - (extent - last * self.offset))

    def within(self, i: Expr, ranges: Mapping[str, Interval]) -> Expr:
        """The i-th tile where each variable stays in its range."""
        try:
            low, high = ix.bounds(i, ranges)
        except KeyError:
            return self.tile(i)
        return ix.simplified(self.tile(i, low >= 0 and high < self.tiles), ranges)


@record
class Order:
    """The tile that `T.use_swizzle` gives for the index `at`, by a name of its own until all is known that goes by it."""

    name: str
    at: Expr
    bands: Bands
    span: Span


def in_some_order(
    statements: Sequence[Any], orders: Sequence[Order], grid: Mapping[str, int], plain: Sequence[Stmt]
) -> tuple[tuple[Any, ...], list[Note]]:
    """The statements without the names of `orders`, and what is to be told. `grid`: the blocks along each variable; `plain`: the
    statements without what orders them."""
    body, told = tuple(statements), []
    for order in orders:
        why = "more than one T.use_swizzle is" if len(orders) > 1 else _why_kept(order, grid, tuple(plain))
        kept = order.bands.within(order.at, _ranges(plain, grid))
        body = substituted(body, {order.name: kept if why else order.at})
        told.append(Note(_KEPT.format(why) if why else _FOUND, order.span))
    return body, told


_FOUND = "the order of blocks is found: T.use_swizzle gives the tile's own index"
_KEPT = "{} used here: each tile has the index that T.use_swizzle gives"


def _ranges(body: Sequence[Stmt], grid: Mapping[str, int]) -> dict[str, Interval]:
    loops = {s.var: (s.start, s.start + s.extent - 1) for s in nodes(tuple(body)) if isinstance(s, For)}
    return {**{name: (0, n - 1) for name, n in grid.items()}, **loops}


def _why_kept(order: Order, grid: Mapping[str, int], body: tuple[Stmt, ...]) -> str:
    """What keeps the plain index from being taken for the permuted one; empty where nothing does."""
    loops = [s for s in nodes(body) if isinstance(s, For) and s.var in ix.variables(order.at)]
    block = next((name for name in ix.variables(order.at) if name in grid), "")
    if not block or len(grid) != 1 or len(loops) > 1:
        return "an index that is not that of a tile is"
    if not loops:
        return _used(block, nodes(body)) or _other_count(order, grid[block])
    match [s for s in loops[0].body if not isinstance(s, Alloc)]:
        case [If(otherwise=()) as guard]:
            around = (n for n in nodes(body) if n is not guard)
            used = _used(block, around) or _used(loops[0].var, (n for n in nodes(guard.then)))
            return used or _guarded(order, guard, block, grid[block], loops[0], buffer_shapes(body))
    return "a tile in a loop with more than a branch for it is"


def _used(name: str, among: Iterable[Any]) -> str:
    """That a variable is used among some nodes, if it is."""
    return next((f"`{name}` is also" for e in _indices(among) if name in ix.variables(e)), "")


def _indices(among: Iterable[Any]) -> Iterator[Expr]:
    for n in among:
        for value in vars(n).values():
            parts = value if isinstance(value, tuple) else (value,)
            yield from (e for e in parts if isinstance(e, Expr))


def _other_count(order: Order, count: int) -> str:
    return "" if count == order.bands.tiles else f"an order of {order.bands.tiles} tiles, and not {count}, is"


def _guarded(order: Order, guard: If, block: str, blocks: int, loop: For, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """What is against the other order of a loop that does a tile where a condition holds."""
    tiles, points = order.bands.tiles, range(blocks * loop.extent)
    if len(points) > MAX_POINTS or loop.start or loop.count is not None:
        return "a loop of so many tiles is"
    where = [{block: t % blocks, loop.var: t // blocks} for t in points]
    counts = [ix.evaluate(order.at, w) for w in where] == [*points]
    if not counts or ix.variables(guard.condition) - {block, loop.var, order.name}:
        return "another condition than one for the tile is"
    does = lambda t, tile: bool(ix.evaluate(guard.condition, {**where[t], order.name: tile}))  # noqa: E731
    holds = [does(t, t) for t in points]
    done = [tile for t in points if does(t, tile := ix.evaluate(order.bands.tile(ix.const(t)), {}))]
    if holds != [t < tiles for t in points] or set(done) != set(range(tiles)):
        return _other_count(order, sum(holds)) or "another condition than one for the tile is"
    written = assigned(guard.then)
    if written & Liveness(shapes).before(guard.then, frozenset()):
        return "what goes on from tile to tile is"
    twice = len(done) > tiles and _differs_twice(guard.then, written - shapes.keys())
    return "what does some tiles twice is" if twice else ""


def _differs_twice(body: tuple[Stmt, ...], stored: frozenset[str]) -> bool:
    """Whether doing a tile once more could give something else."""
    return any(isinstance(s, Assign) and s.atomic for s in nodes(body)) or bool(stored & mentioned(body))
