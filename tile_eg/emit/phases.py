"""Two programs as one launch: all cores meet between them, so each keeps its own addresses and flags."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from tile_eg.chips import Chip
from tile_eg.errors import PlanError
from tile_eg.ir.index import BLOCK, SUB, Expr, less, substitute, var
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import cores
from tile_eg.ir.program import (
    AIC,
    AIV,
    CrossSet,
    Gm,
    Instr,
    Loop,
    Node,
    PipeBarrier,
    Program,
    SyncAll,
    Tasks,
    Tile,
    WaitFlag,
    When,
    walk,
)
from tile_eg.ir.program.tasks import free_names, renamed, with_indices
from tile_eg.ops.types import Level

MIXED = "MIX_AIC_1_2"
OWN = var(BLOCK)


class CannotMeet(PlanError):
    """Two programs that cannot be one launch."""


def one_launch(first: Program, second: Program, chip: Chip) -> Program:
    """The first program, a meeting of all cores, and the second one.

    CannotMeet where the blocks of either do not all run at a time, or where one uses a single vector core beside a cube core.
    """
    blocks = max(_groups(first, chip), _groups(second, chip))
    first = without_names(first) if _alone(first) else first
    second = _with_other_names(without_names(second), _names(first))
    streams = {core: (*_of_blocks(first, core, blocks), SyncAll(), *_of_blocks(second, core, blocks)) for core in (AIC, AIV)}
    return replace(
        first,
        kernel_type=MIXED,
        blocks=blocks,
        halves=True,
        workspace=max(first.workspace, second.workspace),
        buffers=(*first.buffers, *second.buffers),
        cube=streams[AIC],
        vector=streams[AIV],
        shared=_all_shared(first, second),
        numbers=_all_numbers(first, second),
        wholes=_all_wholes(first, second),
    )


def beside(cube: Program, vector: Program, chip: Chip) -> Program:
    """One launch of the blocks of both, whose vector cores do what the second program says before what the first one does.

    What they tell the cube core ahead of everything, that places in the workspace are free, they tell it first. CannotMeet where
    the first program uses a single vector core or the second has more blocks than cores, or where UB has no room beside what the
    cube core writes there.
    """
    if cores(cube.kernel_type) == (1, 1):
        raise CannotMeet("its blocks use one vector core beside each cube core")
    if vector.cube or _groups(vector, chip) > cube.blocks:
        raise CannotMeet("it is not work for the vector cores of the same blocks")
    vector = _behind(_written_by_the_cube_core(cube), _with_other_names(_with_other_loops(vector, cube), _names(cube)), chip)
    start = next((k for k, n in enumerate(cube.vector) if isinstance(n, Loop)), len(cube.vector))
    ahead = tuple(n for n in cube.vector[:start] if isinstance(n, CrossSet))
    rest = tuple(n for k, n in enumerate(cube.vector) if k >= start or not isinstance(n, CrossSet))
    stream = (*ahead, *_of_blocks(vector, AIV, cube.blocks), *((PipeBarrier("ALL"), *rest) if rest else ()))
    buffers, shared = (*cube.buffers, *vector.buffers), _all_shared(cube, vector)
    workspace, numbers = max(cube.workspace, vector.workspace), _all_numbers(cube, vector)
    made = replace(cube, kernel_type=MIXED, halves=True, workspace=workspace, buffers=buffers, vector=stream, shared=shared)
    return replace(made, numbers=numbers, wholes=_all_wholes(cube, vector))


def in_turn(first: Program, second: Program, start: int, chip: Chip) -> Program:
    """One launch of two programs for other outputs. Cube cores that are done with the first go on with the second, from its first
    block at number `start` on. All cores meet between them where the second needs vector cores, or reads what the first one
    stores, which no one else sees; and where both use the workspace, which vector cores of the first may still read.

    CannotMeet as in `one_launch`, and where both make a tensor of one name for their own blocks.
    """
    if {t.name for t in first.shared} & {t.name for t in second.shared}:
        raise CannotMeet("both phases make a tensor of one name for all blocks")
    handed = {t.name for t in first.tensors if t.output} & _read_by(second)
    first = _shared_among(first, handed)
    second = _shared_among(second, {t.name for t in first.shared})
    written = {t.name for t in second.tensors if t.output}
    tensors = tuple(t if t.name in written else own for own, t in zip(first.tensors, second.tensors, strict=True))
    first = replace(first, tensors=tensors)
    apart = not handed and not (first.vector and first.workspace and second.workspace)
    if apart and second.kernel_type == "AIC_ONLY" and second.blocks <= first.blocks and not _alone(first):
        return behind(first, second, start)
    return one_launch(without_names(first), second, chip)


def _read_by(p: Program) -> set[str]:
    """The tensors that a program loads from."""
    instrs = (n for core in (AIC, AIV) for n in walk(p.core(core)) if isinstance(n, Instr))
    return {source.tensor for n in instrs for source in n.srcs if isinstance(source, Gm)}


def _shared_among(p: Program, names: Collection[str]) -> Program:
    """The program with tensors of these names as what blocks share, and not as arguments."""
    found = tuple(replace(t, output=True) for t in p.tensors if t.name in names)
    return replace(p, tensors=tuple(t for t in p.tensors if t.name not in names), shared=(*p.shared, *found))


def behind(first: Program, cube: Program, start: int = 0) -> Program:
    """One launch whose cube cores do what the second program says when they are done with the first one, from the block of number
    `start` on.

    CannotMeet where the second one has work for vector cores, or more blocks than the first.
    """
    if cube.kernel_type != "AIC_ONLY" or cube.blocks > first.blocks:
        raise CannotMeet("it is not work for the cube cores of the same blocks")
    cube = _with_other_names(_with_other_loops(without_names(cube), first), _names(first))
    index = (var(BLOCK) + (first.blocks - start)) % first.blocks if start else OWN
    return replace(
        first,
        workspace=max(first.workspace, cube.workspace),
        buffers=(*first.buffers, *cube.buffers),
        cube=(*first.cube, PipeBarrier("ALL"), *_of_blocks(cube, AIC, first.blocks, index)),
        shared=_all_shared(first, cube),
        numbers=_all_numbers(first, cube),
        wholes=_all_wholes(first, cube),
    )


def without_names(p: Program) -> Program:
    """The program with what its blocks' names stand for in their place: another program of the launch may have the same ones."""
    known: dict[str, Expr] = {}
    for let in p.lets:
        known[let.name] = substitute(let.value, known)
    return replace(p, cube=renamed(p.cube, known), vector=renamed(p.vector, known), lets=()) if known else p


def _all_numbers(*programs: Program) -> tuple[str, ...]:
    """The numbers that the launch passes to one of the phases."""
    return tuple(dict.fromkeys(n for p in programs for n in p.numbers))


def _all_wholes(*programs: Program) -> tuple[str, ...]:
    """Those of them that are whole."""
    return tuple(dict.fromkeys(n for p in programs for n in p.wholes))


def _all_shared(*programs: Program) -> tuple[Tensor, ...]:
    """What the phases of a launch share, each tensor once."""
    return tuple(dict.fromkeys(t for p in programs for t in p.shared))


def _written_by_the_cube_core(p: Program) -> int:
    """Bytes of UB up to the end of what the cube core writes there."""
    to = {n.dst.buffer for n in walk(p.cube) if isinstance(n, Instr) and isinstance(n.dst, Tile)}
    return max((max(b.addresses) + b.slot_bytes for b in p.buffers if b.level is Level.UB and b.name in to), default=0)


def _behind(start: int, p: Program, chip: Chip) -> Program:
    """The program of vector cores with its buffers in UB from an address on."""
    ends = [max(b.addresses) + b.slot_bytes for b in p.buffers if b.level is Level.UB]
    if start + max(ends, default=0) > chip.level_bytes(Level.UB):
        raise CannotMeet("UB has no room for it beside what the cube core writes there")
    moved = (replace(b, addresses=tuple(a + start for a in b.addresses)) if b.level is Level.UB else b for b in p.buffers)
    return replace(p, buffers=tuple(moved))


def added_up(p: Program, tiles: int) -> Program:
    """A program whose blocks add their sums to an output, but the first `tiles` blocks, one for each tile, store theirs.

    The others add once all cores have met. CannotMeet where the additions are not the last that the cube cores do.
    """
    at = next((k for k, n in enumerate(p.cube) if isinstance(n, Instr) and n.atomic), len(p.cube))
    sums = [n for n in p.cube[at:] if isinstance(n, Instr)]
    waits = tuple(n for n in p.cube[at:] if isinstance(n, WaitFlag))
    if p.kernel_type != "AIC_ONLY" or not sums or len(sums) + len(waits) != len(p.cube) - at:
        raise CannotMeet("its sums do not leave the cube cores at the end")
    stored = When(less(var(BLOCK), tiles), tuple(replace(n, atomic="") for n in sums))
    added = When(less(tiles - 1, var(BLOCK)), tuple(sums))
    cube = (*p.cube[:at], stored, *waits, SyncAll(), added)
    return replace(p, kernel_type=MIXED, halves=True, cube=cube, vector=(SyncAll(),))


def _alone(p: Program) -> bool:
    """Whether each vector core of a vector kernel has a block of its own."""
    return p.kernel_type == "AIV_ONLY" and not p.halves


def _groups(p: Program, chip: Chip) -> int:
    """How many cube cores with their two vector cores a program's blocks take."""
    if cores(p.kernel_type) == (1, 1):
        raise CannotMeet("its blocks use one vector core beside each cube core")
    groups = -(-p.blocks // 2) if _alone(p) else p.blocks
    if groups > chip.cube_cores:
        raise CannotMeet(f"its {p.blocks} blocks do not all run at a time")
    return groups


def _of_blocks(p: Program, core: str, blocks: int, index: Expr = OWN) -> tuple[Node, ...]:
    """A stream of a program, in a launch of so many blocks of a cube core with two vector cores each, of which the block of an
    index has this number in the program. Blocks that it does not have meet the others too."""
    nodes, there = p.core(core), blocks
    if _alone(p):
        index, there = index * 2 + var(SUB), 2 * blocks
    if index != OWN:
        nodes = renamed(nodes, {BLOCK: index})
    if not nodes or p.blocks == there:
        return nodes
    parts = (tuple(part) for _, part in groupby(nodes, lambda n: isinstance(n, SyncAll)))
    return tuple(n for part in parts for n in (part if isinstance(part[0], SyncAll) else (When(less(index, p.blocks), part),)))


def _names(p: Program) -> set[str]:
    """What the buffers of a program are called."""
    return {b.name for b in p.buffers}


def _with_other_loops(p: Program, first: Program) -> Program:
    """The program with variables that those of another one are not called: the cores of a phase share a loop by its name."""
    (mine, taken) = ({v for core in (AIC, AIV) for v in _variables(x.core(core))} for x in (p, first))
    names = {v: free_names((v,), taken | mine - {v})[v] for v in sorted(mine & taken)}
    return replace(p, cube=_over(p.cube, names), vector=_over(p.vector, names)) if names else p


def _variables(nodes: tuple[Node, ...]) -> Iterator[str]:
    """The variables of loops, and the names of what tasks work on."""
    for n in walk(nodes):
        if isinstance(n, Loop):
            yield n.var
            yield from (let.name for let in n.lets) if isinstance(n, Tasks) else ()


def _over(nodes: tuple[Node, ...], names: Mapping[str, str]) -> tuple[Node, ...]:
    """The nodes with other names for some variables."""
    meaning = {old: var(new) for old, new in names.items()}
    return tuple(_node_over(n, names, meaning) for n in nodes)


def _node_over(n: Node, names: Mapping[str, str], meaning: Mapping[str, Expr]) -> Node:
    if isinstance(n, When):
        return replace(n, condition=substitute(n.condition, meaning), body=_over(n.body, names))
    if not isinstance(n, Loop):
        return with_indices(n, lambda e: substitute(e, meaning))
    if isinstance(n, Tasks):
        lets = (replace(let, name=names.get(let.name, let.name), value=substitute(let.value, meaning)) for let in n.lets)
        n = replace(n, lets=tuple(lets))
    until = None if n.until is None else substitute(n.until, meaning)
    return replace(n, var=names.get(n.var, n.var), body=_over(n.body, names), until=until)


def _with_other_names(p: Program, taken: set[str]) -> Program:
    """The program with buffers that are not called as others are."""
    names = {b.name: free_names((b.name,), taken | {o.name for o in p.buffers if o is not b})[b.name] for b in p.buffers}
    buffers = tuple(replace(b, name=names[b.name]) for b in p.buffers)
    return replace(p, buffers=buffers, cube=_called(p.cube, names), vector=_called(p.vector, names))


def _called(nodes: tuple[Node, ...], names: dict[str, str]) -> tuple[Node, ...]:
    out: list[Node] = []
    for n in nodes:
        if isinstance(n, Loop | When):
            n = replace(n, body=_called(n.body, names))
        elif isinstance(n, Instr):
            scratch = _tile(n.scratch, names) if n.scratch else None
            sources = tuple(_tile(s, names) if isinstance(s, Tile) else s for s in n.srcs)
            n = replace(n, dst=_tile(n.dst, names) if isinstance(n.dst, Tile) else n.dst, srcs=sources, scratch=scratch)
        out.append(n)
    return tuple(out)


def _tile(t: Tile, names: dict[str, str]) -> Tile:
    return replace(t, buffer=names[t.buffer])
