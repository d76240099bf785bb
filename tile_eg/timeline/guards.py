"""What the guards of a stream make of its blocks: which of them work, and how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tile_eg.ir.index import BLOCK, SUB, Expr, variables
from tile_eg.ir.machine import REPEAT_BYTES
from tile_eg.ir.program import Instr, Loop, Node, Program, Tasks, Tile, When, walk
from tile_eg.ir.sampling import spread
from tile_eg.ir.sharing import once
from tile_eg.ops.records import record
from tile_eg.timeline.arrays import LEAST_SAMPLE, sample, values

SAMPLED_BLOCKS = 256
Count = Callable[[Instr, Mapping[str, Any], frozenset[str]], Any]


@record
class Loads:
    """How the work of a launch lies on its blocks, where guards leave some of them less to do than others.

    `mean` is how many of the blocks that run side by side work at a time, on average; `heavy` are those to time, the slowest one
    among them: the first, which has whole tiles, the one with the most instructions, the one that does the most rows, and those
    whose columns, or whose rows, fill no repeats of the vector unit. `share` of what the slowest block has to do is what a block
    has, where blocks decide how often their loops run. `turns` are the blocks at work in all turns but the last and in that one,
    where blocks take tiles in turn and not all of them have a last one.
    """

    mean: float
    heavy: tuple[int, ...]
    share: float = 1.0
    turns: tuple[float, float] | None = None


def loads(program: Program, at_once: int) -> Loads:
    """Of a launch that runs `at_once` blocks side by side; of many blocks a sample is looked at."""
    side_by_side = min(program.blocks, at_once)
    conditions = [variables(e) for nodes in _streams(program) for e in _conditions(nodes)]
    counted = {loop.var for loop in counted_loops(program)}
    tested = frozenset[str]().union(*(names for names in conditions if BLOCK in names)) - (counted - _in_rounds(program))
    tested |= {n.var for nodes in _streams(program) for n in nodes if isinstance(n, Tasks) and _cut(n)}
    if program.blocks == 1:
        return Loads(side_by_side, (0,))
    spread_out = spread(program.blocks, SAMPLED_BLOCKS)
    blocks = sorted({*range(side_by_side), *spread_out, program.blocks - 1})
    env = {BLOCK: np.array(blocks), SUB: np.array(0)}
    cut = {blocks[n] for n in (*_cut_columns(program, env), *_uneven_rows(program, env))}
    if not tested:
        return Loads(side_by_side, (0, *sorted(cut - {0})))
    work = sum((np.broadcast_to(_issued(nodes, env, tested), len(blocks)) for nodes in _streams(program)), np.zeros(1))
    first, most = work[:side_by_side], int(np.argmax(work))
    rows = sum((np.broadcast_to(_issued(nodes, env, tested, _rows), len(blocks)) for nodes in _streams(program)), np.zeros(1))
    most_of = {blocks[int(np.argmax(n))] for n in (work, rows) if n[0] < n.max()}
    mean, heavy = float(first.sum() / max(1, first.max())), (0, *sorted((most_of | cut) - {0}))
    if not counted or not work[most]:
        return Loads(mean, heavy, turns=None if counted else _turns(program, mean))
    share = float(work[np.isin(blocks, spread_out)].mean() / work[most])
    return Loads(_working(program.blocks, side_by_side, share), heavy, share)


def _in_rounds(program: Program) -> set[str]:
    """The loops that go on from tile to tile: each tile goes through whole rounds, and guards say how much of it it does."""
    tiles = (n for nodes in _streams(program) for n in nodes if isinstance(n, Tasks) and n.behind)
    return {loop.var for n in tiles for loop in walk(n.body) if isinstance(loop, Loop)}


def _turns(program: Program, mean: float) -> tuple[float, float] | None:
    """How many of the blocks that take tiles in turn work in all turns but the last, and in that one; `mean` is that of all."""
    tiles = next((n for nodes in _streams(program) for n in nodes if isinstance(n, Tasks)), None)
    if tiles is None or tiles.trips < 2:
        return None
    turns, have_last = _turns_of(tiles, program.blocks)
    before = min(program.blocks, mean * tiles.trips / turns)
    return (before, before * have_last) if have_last < 1 else None


def _turns_of(tiles: Tasks, blocks: int) -> tuple[float, float]:
    """How many tiles a block goes through on average, and the share of the blocks that have a last one."""

    def found() -> tuple[float, float]:
        numbers, stand_for = sample(blocks)
        each = np.broadcast_to(values(tiles.until, {BLOCK: numbers, SUB: 0}), len(numbers))
        return tuple(float(np.average(x, weights=stand_for)) for x in (each, each == tiles.trips))  # type: ignore[return-value]

    return once("turns", (tiles.until, tiles.trips, blocks), found)


def _cut_columns(program: Program, env: Mapping[str, Any]) -> set[int]:
    """The first of the blocks in `env` in which a tensor ends within the columns of vector instructions."""
    asked = {i.cols for i in _vector(program) if _is_of_block(i.cols)}
    columns = (np.asarray(values(e, env)) for e in asked)
    return {int(np.argmax(cut)) for n in columns if (cut := (n > 0) & (n < n.max())).any()}


def _uneven_rows(program: Program, env: Mapping[str, Any]) -> set[int]:
    """The first of the blocks in `env` whose rows fill no repeats of vector instructions, where those of whole tiles do."""
    size = {b.name: b.dtype.bytes for b in program.buffers}
    flat = (i for i in _vector(program) if i.form == "flat" and _is_of_block(i.rows) and isinstance(i.dst, Tile))
    asked = {i.rows * i.cols.value * size[i.dst.buffer] for i in flat if i.cols.value}  # type: ignore[union-attr]
    filled = (np.asarray(values(e, env)) for e in asked)
    return {int(np.argmax(n % REPEAT_BYTES > 0)) for n in filled if n.max() % REPEAT_BYTES == 0 and (n % REPEAT_BYTES).any()}


def _vector(program: Program) -> Iterator[Instr]:
    return (n for n in walk(program.vector) if isinstance(n, Instr) and n.op.startswith("v"))


def _is_of_block(e: Expr) -> bool:
    """Whether the block alone decides a number."""
    return BLOCK in (names := variables(e)) and names <= {BLOCK, SUB}


def _cut(tiles: Tasks) -> bool:
    """Whether some of the tiles that a block goes through have fewer rows."""
    sizes = (variables(i.rows) for i in walk(tiles.body) if isinstance(i, Instr))
    return any({BLOCK, tiles.var} <= names for names in sizes)


def _working(blocks: int, side_by_side: int, share: float) -> float:
    """How many blocks work at a time, where one has `share` of the longest one's work on average, and cores take one after the
    other: all work over the time from the longest block and the mean of the others that its core does."""
    behind = -(-blocks // side_by_side) - 1
    return min(side_by_side, blocks * share / (1 + behind * share))


def counted_loops(program: Program) -> list[Loop]:
    """The loops whose trips blocks and tiles decide."""
    loops = (n for nodes in _streams(program) for n in walk(nodes) if isinstance(n, Loop))
    return [n for n in loops if n.until is not None and not isinstance(n, Tasks)]


def mean_trips(program: Program) -> dict[str, float]:
    """How often the loops run, by their variables, whose trips blocks and tiles decide: the mean over all of these.

    So it is for the loop over tiles, of which some blocks have one more than others.
    """
    counted, out = {id(n) for n in counted_loops(program)}, dict[str, float]()
    for top in (n for nodes in _streams(program) for n in nodes):
        if isinstance(top, Tasks):
            out[top.var] = _turns_of(top, program.blocks)[0]
        if not counted:
            continue
        blocks, runs = sample(program.blocks)
        env: dict[str, Any] = {BLOCK: blocks, SUB: 0}
        if isinstance(top, Tasks):
            env[top.var], turns = (a.reshape(-1, 1) for a in sample(top.trips, len(blocks)))
            runs = (env[top.var] < values(top.until, env)) * runs * turns
        for loop in walk((top,)):
            if isinstance(loop, Loop) and loop.until is not None and id(loop) in counted:
                with np.errstate(divide="ignore"):  # behind the last tile there is no band, and nothing is counted
                    trips = values(loop.until, env) * runs
                out[loop.var] = float(trips.sum() / max(1, runs.sum()))
    return out


def _streams(program: Program) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    return program.cube, program.vector


def _conditions(nodes: Sequence[Node]) -> Iterator[Expr]:
    for node in nodes:
        if isinstance(node, When | Instr):
            yield node.condition if isinstance(node, When) else node.when
        if isinstance(node, Loop) and node.until is not None:
            yield node.until
        if isinstance(node, Loop | When):
            yield from _conditions(node.body)


def _one(i: Instr, env: Mapping[str, Any], tested: frozenset[str]) -> Any:
    return 1


def _rows(i: Instr, env: Mapping[str, Any], tested: frozenset[str]) -> Any:
    """Rows of an instruction, of the most that it ever has, where its block decides."""
    if not _looked_at(i.rows, tested):
        return 1
    rows = values(i.rows, env)
    return np.maximum(rows, 0) / max(1, np.max(rows))


def _issued(nodes: Sequence[Node], env: Mapping[str, Any], tested: frozenset[str], each: Count = _one) -> Any:
    """Instructions of each block, or what `each` makes of one; only guards of it, and of loops around them, are looked at.

    Each loop that they look at, too, is an axis of its own of the arrays in `env`, whose last axis is the blocks.
    """
    total: Any = 0
    for node in nodes:
        if isinstance(node, Instr):
            total = total + each(node, env, tested) * (values(node.when, env) if _looked_at(node.when, tested) else 1)
        elif isinstance(node, When):
            holds = values(node.condition, env) != 0 if _looked_at(node.condition, tested) else 1
            total = total + holds * _issued(node.body, env, tested, each)
        elif isinstance(node, Loop):
            total = total + _in_loop(node, env, tested, each)
    return total


def _in_loop(node: Loop, env: Mapping[str, Any], tested: frozenset[str], inner: Count) -> Any:
    until = node.trips if node.until is None else values(node.until, env)
    if node.var not in tested:
        return until * _issued(node.body, env, tested, inner)
    depth = max(np.ndim(v) for v in env.values())
    beside = prod(np.size(v) for v in env.values()) * _points(node.body, tested)
    trips, stand_for = (a.reshape(-1, *[1] * depth) for a in sample(node.trips, beside))
    each = _issued(node.body, {**env, node.var: trips}, tested, inner) * (trips < until) * stand_for
    return each.sum(axis=0)


def _points(nodes: Sequence[Node], tested: frozenset[str]) -> int:
    """How many trips of loops in `nodes` are looked at for each trip of those around them, at the most."""

    def of(node: Loop | When) -> int:
        own = min(node.trips, LEAST_SAMPLE) if isinstance(node, Loop) and node.var in tested else 1
        return own * _points(node.body, tested)

    return max((of(n) for n in nodes if isinstance(n, Loop | When)), default=1)


def _looked_at(condition: Expr, tested: frozenset[str]) -> bool:
    names = variables(condition)
    return BLOCK in names and names <= tested
