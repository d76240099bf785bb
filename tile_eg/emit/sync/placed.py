"""Flags and barriers as what stands at the places of a program, so that programs which need the same ones share them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tile_eg.emit.sync.trace import Layout, Path, Site
from tile_eg.ir.index import ONE, ZERO, Expr, variables
from tile_eg.ir.program import AIC, AIV, Gm, Instr, Loop, Node, Operand, Program, Tasks, Tile, When, walk
from tile_eg.ir.program.tasks import counted_by
from tile_eg.ops.records import changed

ONLY_READ = Gm("", ZERO, 0)
UNMINDED: dict[str, Any] = {
    "scalar": 0.0, "other": 0.0, "relu": False, "swap": False, "atomic": "", "pad": None, "mode": "", "rules": (),
}  # fmt: skip
"""What synchronisation does not mind in an instruction."""
Placed = Mapping[str, Mapping[Site, list[Node]]]  # by core and place


def outlined(program: Program) -> Program:
    """The program with that alone of each instruction on which synchronisation depends: where it works, not on what.

    Loads from a tensor that nobody writes are alike, however its elements lie: only what arrives is in anybody's way. So are
    stores to a tensor that nothing else touches, once a tile.
    """
    layout, once = Layout(program), _stored_once(program)
    cube, vector = (_outlines(program.core(core), layout, once) for core in (AIC, AIV))
    return replace(program, cube=cube, vector=vector)


def _stored_once(program: Program) -> frozenset[str]:
    """The tensors that one instruction touches, by writing them, and does so once for each tile of a block."""
    touched = Counter(o.tensor for core in (AIC, AIV) for i in _instructions(program.core(core)) for o in _in_gm(i))
    outside = [i for core in (AIC, AIV) for i in _instructions(program.core(core), within=Tasks | When)]
    return frozenset(i.dst.tensor for i in outside if isinstance(i.dst, Gm) and touched[i.dst.tensor] == 1)


def _instructions(nodes: tuple[Node, ...], within: Any = Loop | When) -> Iterator[Instr]:
    """The instructions, those in bodies of such nodes included."""
    for n in nodes:
        if isinstance(n, Instr):
            yield n
        elif isinstance(n, within):
            yield from _instructions(n.body, within)


def _in_gm(i: Instr) -> list[Gm]:
    return [o for o in (*i.reads(), *i.writes()) if isinstance(o, Gm)]


def _outlines(nodes: tuple[Node, ...], layout: Layout, once: frozenset[str]) -> tuple[Node, ...]:
    out: list[Node] = []
    for n in nodes:
        n = _outline(n, layout, once) if isinstance(n, Instr) else n
        out.append(replace(n, body=_outlines(n.body, layout, once)) if isinstance(n, Loop | When) else n)
    return tuple(out)


def _outline(i: Instr, layout: Layout, once: frozenset[str]) -> Instr:
    if isinstance(i.dst, Gm) and i.dst.tensor in once:
        i = changed(i, dst=Gm(i.dst.tensor, ZERO, 0))
    srcs = tuple(ONLY_READ if isinstance(o, Gm) and o.tensor not in layout.written else o for o in i.srcs)
    form, unit, init = (i.form if i.pipe == "V" else "flat"), (ZERO if i.unit == ZERO else ONE), (ONE if i.init == ONE else ZERO)
    out = changed(i, srcs=srcs, bound=ZERO, form=form, unit=unit, init=init, **UNMINDED)
    parts = (_somewhere(o, once) or isinstance(o, Tile) and o.buffer in layout.windowed for o in (i.dst, *srcs))
    return out if i.op == "mmad" or i.pipe == "V" or any(parts) else changed(out, rows=ONE, cols=ONE, depth=ONE, transpose=False)


def _somewhere(o: Operand, once: frozenset[str]) -> bool:
    """Whether it decides what an instruction is in the way of where this operand lies in GM."""
    return isinstance(o, Gm) and o != ONLY_READ and o.tensor not in once


def decided_by(program: Program) -> Hashable:
    """All that synchronisation depends on, but how many tiles a block has (`tasks.lengths`).

    Programs for which both are equal need the same flags and barriers at the same places.

    How many blocks there are, and which tile a block takes when, is not in it, unless that decides how often a loop runs.
    """
    streams = tuple(tuple(map(_of_any_tiles, program.core(core))) for core in (AIC, AIV))
    counted = (program.blocks, program.sizes is None, program.lets, _lets(program)) if counted_by(program) else ()
    named = frozenset[str]().union(*(variables(e) for stream in streams for n in walk(stream) for e in _expressions(n)))
    ranges = tuple(sorted((name, values) for name, values in Layout(program).ranges.items() if name in named))
    return program.buffers, streams, ranges, counted


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
