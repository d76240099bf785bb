"""The order in which the blocks of a persistent kernel take the tiles of the grid, and programs with their names written out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from math import prod
from typing import Any

from tile_eg.ir.index import BLOCK, MOST_SIZE, Expr, bounds, const, div, minimum, mod, mul, substitute, var, variables, wrap
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.program import (
    CrossSet,
    CrossWait,
    Formula,
    Gm,
    Instr,
    Let,
    Loop,
    Node,
    Operand,
    Program,
    Scalar,
    SetFlag,
    Tasks,
    Tile,
    WaitFlag,
    When,
    walk,
)
from tile_eg.ir.sizes import usual
from tile_eg.ops.records import changed


def tasks(
    body: tuple[Node, ...], blocks: int | Expr, tiles: Sequence[Let], names: Mapping[str, str], count: Expr | None = None
) -> Tasks:
    """The loop of block b over the turns b, b + blocks, ... through as many tiles; `tiles` name what a turn works on.

    The name of the tile is that in `names`, or the last one. Where sizes known at run time decide it, `count` is how many tiles
    there are.
    """
    if count is not None:
        until = div(count + blocks - 1 - var(BLOCK), wrap(blocks))
        return Tasks(names["task"], -(-usual(count) // max(1, usual(blocks))), body, until=until, lets=tuple(tiles))
    assert isinstance(blocks, int)
    total = next(let.most for let in tiles if let.name == names.get("tile", tiles[-1].name)) + 1
    until = wrap(-(-total // blocks)) if total % blocks == 0 else (total + blocks - 1 - var(BLOCK)) // blocks
    return Tasks(names["task"], -(-total // blocks), body, until=until, lets=tuple(tiles))


def in_order(turn: Expr, grid: Sequence[int | Expr], window: int, along: int, names: Mapping[str, str]) -> list[Let]:
    """Which tile of the grid (its first dimension fastest) comes at a turn, as the last of a few names.

    Without a `window` the turns follow the grid. With one, dimension `along` of a grid of two is cut into bands of `window`
    tiles; a band is gone through across its width first, and every other band backwards. So the tiles of one time share rows
    and columns, and L2 serves both.
    """
    last = _last(prod(grid))
    if not window:
        return [Let(names["tile"], turn, last)]
    extent, other = grid[along], grid[1 - along]
    band, size = var(names["band"]), wrap(window * other)
    out = [Let(names["turn"], turn, last), Let(names["band"], div(var(names["turn"]), size), _last(extent) // window)]
    width = wrap(window)
    if not isinstance(extent, int) or extent % window:
        out.append(Let(names["width"], minimum(window, extent - band * window), window))
        width = var(names["width"])
    inside = mod(var(names["turn"]), size)
    out.append(Let(names["step"], div(inside, width), _last(other)))
    across, there = band * window + mod(inside, width), var(names["step"])
    down = there if isinstance(extent, int) and extent <= window else there + mul(band % 2, wrap(other) - 1 - there * 2)
    x, y = (across, down) if along == 0 else (down, across)
    return [*out, Let(names["tile"], y * grid[0] + x, last)]


def _last(count: int | Expr) -> int:
    """The last of so many, or more than that where sizes known at run time decide it."""
    return count - 1 if isinstance(count, int) else min(MOST_SIZE, bounds(count, {})[1])


def tile_at(turn: int, grid: Sequence[int], window: int, along: int) -> int:
    """The tile that `in_order` names, as a number."""
    if not window:
        return turn
    extent, other = grid[along], grid[1 - along]
    band, inside = divmod(turn, window * other)
    there, offset = divmod(inside, min(window, extent - band * window))
    across, down = band * window + offset, other - 1 - there if band % 2 else there
    return down * grid[0] + across if along == 0 else across * grid[0] + down


def free_names(wanted: Collection[str], taken: Collection[str]) -> dict[str, str]:
    """Each wanted name with one that is not taken: its own, or with a number."""
    return {w: next(n for n in chain([w], (f"{w}{i}" for i in count(2))) if n not in taken) for w in wanted}


def counted_by(program: Program) -> list[Let]:
    """The names that say how often loops run."""
    streams = (program.cube, program.vector)
    loops = [n for nodes in streams for n in walk(nodes) if isinstance(n, Loop)]
    used = frozenset[str]().union(*(variables(n.until) for n in loops if n.until is not None and not isinstance(n, Tasks)))
    used |= {now for n in loops if isinstance(n, Tasks) for now, _ in n.before}
    used -= {let.name for n in loops if isinstance(n, Tasks) for let in n.lets if variables(let.value) & numbers_of_trips(n)}
    lets = (*program.lets, *(let for n in loops if isinstance(n, Tasks) for let in n.lets))
    return list(dict.fromkeys(let for let in lets if let.name in used))


def numbers_of_trips(tasks: Tasks) -> frozenset[str]:
    """The names of how often loops run that go on from tile to tile, for a tile and for the one before it."""
    return frozenset(name for pair in tasks.before for name in pair)


def tile_of(tasks: Tasks, program: Program) -> Let:
    """What names a block's tile: the last of the names that count no trips."""
    own, counted = numbers_of_trips(tasks), counted_by(program)
    names = (let for let in tasks.lets if let not in counted and let.name not in own and not variables(let.value) & own)
    return list(names)[-1]


def inlined(program: Program) -> Program:
    """The program with its names, and those of its task loops, replaced by what they stand for; the loops stay. An instruction in
    which no name stands is itself, `held` apart."""
    if not program.lets and not any(isinstance(n, Tasks) and n.lets for nodes in (program.cube, program.vector) for n in nodes):
        return program
    meaning = _meaning(program.lets, {})
    return replace(program, cube=_inlined(program.cube, meaning), vector=_inlined(program.vector, meaning), lets=())


def _inlined(nodes: tuple[Node, ...], meaning: Mapping[str, Expr]) -> tuple[Node, ...]:
    known: dict[Expr, Expr] = {}

    def change(e: Expr) -> Expr:
        if e not in known:
            known[e] = e if variables(e).isdisjoint(meaning) else substitute(e, meaning)
        return known[e]

    return tuple(_in_full(n, meaning, change) for n in nodes)


def _in_full(n: Node, meaning: Mapping[str, Expr], change: Callable[[Expr], Expr]) -> Node:
    match n:
        case Tasks():
            return replace(n, body=_inlined(n.body, _meaning(n.lets, meaning)), until=change(n.until), lets=())
        case Loop():
            until = None if n.until is None else change(n.until)
            return replace(n, body=tuple(_in_full(m, meaning, change) for m in n.body), until=until)
        case When():
            return replace(n, condition=change(n.condition), body=tuple(_in_full(m, meaning, change) for m in n.body))
        case Instr() if n.value is None and all(variables(e).isdisjoint(meaning) for e in _indices(n)):
            return n
    return with_indices(n, change)


def _indices(i: Instr) -> Iterator[Expr]:
    """The index expressions of an instruction that computes nothing on the scalar unit."""
    yield from (i.rows, i.cols, i.depth, i.init, i.bound, i.when, i.unit)
    for o in (i.dst, *i.srcs, i.scratch):
        if isinstance(o, Gm):
            yield from (o.offset, o.stride) if isinstance(o.stride, Expr) else (o.offset,)
        elif o is not None:
            yield from (o.slot, o.row, o.col)


def renamed(nodes: tuple[Node, ...], meaning: Mapping[str, Expr]) -> tuple[Node, ...]:
    """The nodes with variables replaced in every index expression."""
    return _nodes(nodes, meaning)


def with_indices(n: Node, change: Callable[[Expr], Expr]) -> Node:
    """A node that is no loop and no guard with its index expressions changed."""
    match n:
        case SetFlag() | WaitFlag():
            return n if (number := change(n.id)) is n.id else replace(n, id=number)
        case CrossSet() | CrossWait() if isinstance(n.id, Expr):
            return replace(n, id=change(n.id))
        case Scalar():
            return replace(n, value=_formula(n.value, change))
        case Instr():
            return _instr(n, change)
    return n


def _nodes(nodes: tuple[Node, ...], meaning: Mapping[str, Expr]) -> tuple[Node, ...]:
    return tuple(_node(n, meaning) for n in nodes)


def _meaning(lets: Sequence[Let], known: Mapping[str, Expr]) -> dict[str, Expr]:
    """What names stand for, each in terms of those before it; numbers of trips that are read are as large as they get."""
    out = dict(known)
    for let in lets:
        out[let.name] = const(let.most) if elements_in(let.value) else substitute(let.value, out)
    return out


def _node(n: Node, meaning: Mapping[str, Expr]) -> Node:
    match n:
        case Tasks():
            return replace(n, body=_nodes(n.body, _meaning(n.lets, meaning)), until=substitute(n.until, meaning), lets=())
        case Loop():
            until = None if n.until is None else substitute(n.until, meaning)
            return replace(n, body=_nodes(n.body, meaning), until=until)
        case When():
            return replace(n, condition=substitute(n.condition, meaning), body=_nodes(n.body, meaning))
    return with_indices(n, lambda e: substitute(e, meaning))


def _stride(stride: int | Expr, change: Callable[[Expr], Expr]) -> int | Expr:
    """The elements between two rows, as a number where it is one."""
    found = change(stride) if isinstance(stride, Expr) else wrap(stride)
    return found if found.value is None else found.value


def _operand(o: Operand, change: Callable[[Expr], Expr]) -> Operand:
    if isinstance(o, Gm):
        return Gm(o.tensor, change(o.offset), _stride(o.stride, change))
    return Tile(o.buffer, *(change(e) for e in (o.slot, o.row, o.col)))


def _formula(f: Formula, change: Callable[[Expr], Expr]) -> Formula:
    def part(a: Any) -> Any:
        if isinstance(a, Formula):
            return _formula(a, change)
        return _operand(a, change) if isinstance(a, Tile | Gm) else change(a) if isinstance(a, Expr) else a

    return replace(f, args=tuple(map(part, f.args)))


def _instr(i: Instr, change: Callable[[Expr], Expr]) -> Instr:
    sizes = {f: change(getattr(i, f)) for f in ("rows", "cols", "depth", "init", "bound", "when", "unit")}
    scratch = _operand(i.scratch, change) if i.scratch else None
    value = _formula(i.value, change) if i.value else None
    srcs, held = tuple(_operand(o, change) for o in i.srcs), i.held and i.held.changed(change)
    return changed(i, dst=_operand(i.dst, change), srcs=srcs, scratch=scratch, value=value, held=held, **sizes)
