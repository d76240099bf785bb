"""A program as arrays for graph networks: its instructions, who reads what whom wrote, and the order on each pipe."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tile_eg.chips import Chip
from tile_eg.cost_models.context import PIPES
from tile_eg.cost_models.counted import Issued, issued
from tile_eg.ir.program import VECTOR, Program, Tile
from tile_eg.ops.physical import PIPES as MOVES
from tile_eg.ops.records import record
from tile_eg.timeline.instruction import cycles, moved_bytes

OPS = tuple(sorted({*MOVES, *VECTOR}))
"""The instructions by number."""
NODE_FEATURES = ("cycles", "times", "rows", "cols", "depth", "bytes", "loops", "slots")
"""Columns of a node, each as log2(1 + x): cycles of one issue, how often it is issued, its sizes, what it moves, the loops around
it, and the slots of the buffer that it writes."""
EDGE_KINDS = ("reads", "reads of the trip before", "order")
"""Of an edge from one instruction to another: which reads what it wrote, in the same trip or in the next one; or which is issued
behind it on the same pipe."""


@record
class GraphArrays:
    """A program with N instructions and E edges.

    `ops` int64[N] are places in `OPS`, `pipes` int64[N] in `cost_models.context.PIPES`, `nodes` float32[N, len(NODE_FEATURES)].
    `edges` int64[2, E] are from and to, `kinds` int64[E] places in `EDGE_KINDS`. `whole` float32[2] are log2(1 + x) of the launch
    blocks and of the waves.
    """

    ops: np.ndarray
    pipes: np.ndarray
    nodes: np.ndarray
    edges: np.ndarray
    kinds: np.ndarray
    whole: np.ndarray


def graph_of(program: Program, chip: Chip) -> GraphArrays:
    """The arrays of a program, with its flags or before them."""
    from tile_eg.cost_models.counted import waves

    items = issued(program, chip)
    slots = {b.name: b.slots for b in program.buffers}
    edges = sorted({*_reads(items), *_order(items)})
    return GraphArrays(
        np.array([OPS.index(i.instr.op) for i in items], np.int64),
        np.array([PIPES.index(f"{i.instr.core}.{i.instr.pipe}") for i in items], np.int64),
        np.log2(1 + np.array([_numbers(i, chip, slots) for i in items], np.float32).reshape(len(items), len(NODE_FEATURES))),
        np.array([e[:2] for e in edges], np.int64).reshape(-1, 2).T,
        np.array([e[2] for e in edges], np.int64),
        np.log2(1 + np.array([program.blocks, waves(program, chip)], np.float32)),
    )


def _numbers(i: Issued, chip: Chip, slots: dict[str, int]) -> list[float]:
    w, dst = i.work, i.instr.dst
    held = slots.get(dst.buffer, 1) if isinstance(dst, Tile) else 0
    return [cycles(chip, w), i.times, w.rows, w.cols, w.depth, moved_bytes(w), len(i.loops), held]


def _reads(items: Sequence[Issued]) -> list[tuple[int, int, int]]:
    """From the last writer of each place to its reader; one that stands behind it in a loop of both wrote in the trip before."""
    out, written = [], dict[str, int]()
    last = {place: n for n, i in enumerate(items) for place in _places(i.instr.writes())}
    for n, i in enumerate(items):
        for place in _places(i.instr.reads()):
            if place in written:
                out.append((written[place], n, 0))
            elif place in last and set(items[last[place]].loops) & set(i.loops):
                out.append((last[place], n, 1))
        written |= dict.fromkeys(_places(i.instr.writes()), n)
    return out


def _places(operands: Sequence[object]) -> list[str]:
    return [str(getattr(o, "buffer", None) or getattr(o, "tensor", "")) for o in operands]


def _order(items: Sequence[Issued]) -> list[tuple[int, int, int]]:
    """Of instructions that follow each other on one pipe."""
    out, before = [], dict[tuple[str, str], int]()
    for n, i in enumerate(items):
        key = i.instr.core, i.instr.pipe
        if key in before:
            out.append((before[key], n, 2))
        before[key] = n
    return out
