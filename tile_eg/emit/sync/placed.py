"""Flags and barriers as what stands at the places of a program, so that programs which need the same ones share them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace

from tile_eg.emit.sync.tasks import lengths
from tile_eg.emit.sync.trace import Layout, Path, Site
from tile_eg.ir.index import ZERO, Expr, variables
from tile_eg.ir.program import AIC, AIV, Instr, Loop, Node, Program, Tasks, Tile, When, walk
from tile_eg.ir.program.tasks import counted_by

Placed = Mapping[str, Mapping[Site, list[Node]]]  # by core and place


def decided_by(program: Program) -> Hashable:
    """All that synchronisation depends on: programs for which it is equal need the same flags and barriers at the same places.

    How many blocks there are, and which tile a block takes when, is not in it, unless that decides how often a loop runs.
    """
    streams = tuple(tuple(map(_of_any_tiles, program.core(core))) for core in (AIC, AIV))
    counted = (program.blocks, program.lets, _lets(program)) if counted_by(program) else ()
    named = frozenset[str]().union(*(variables(e) for stream in streams for n in walk(stream) for e in _expressions(n)))
    ranges = tuple(sorted((name, values) for name, values in Layout(program).ranges.items() if name in named))
    return program.buffers, streams, tuple(lengths(program)), ranges, counted


def _expressions(node: Node) -> Iterator[Expr]:
    """What decides where an instruction works, and whether it or a body runs."""
    if isinstance(node, When):
        yield node.condition
    elif isinstance(node, Loop) and node.until is not None:
        yield node.until
    elif isinstance(node, Instr):
        yield from (node.rows, node.cols, node.depth)
        for o in (*node.reads(), *node.writes()):
            yield from (o.slot, o.row, o.col) if isinstance(o, Tile) else (o.offset,)


def _of_any_tiles(node: Node) -> Node:
    return replace(node, trips=0, until=ZERO, lets=()) if isinstance(node, Tasks) else node


def _lets(program: Program) -> tuple:
    return tuple(n.lets for core in (AIC, AIV) for n in program.core(core) if isinstance(n, Tasks))


def with_flags(program: Program, placed: Placed) -> Program:
    """The program with what stands where."""
    streams = {core: _insert(program.core(core), (), placed[core]) if core in placed else () for core in (AIC, AIV)}
    return replace(program, cube=streams[AIC], vector=streams[AIV])


def _insert(nodes: tuple[Node, ...], path: Path, at: Mapping[Site, list[Node]]) -> tuple[Node, ...]:
    out: list[Node] = []
    for k, n in enumerate(nodes):
        here = (*path, k)
        if isinstance(n, Loop | When):
            n = replace(n, body=_insert(n.body, here, at))
        out += [*at.get(("pre", here), ()), n, *at.get(("post", here), ())]
    return tuple(out)
