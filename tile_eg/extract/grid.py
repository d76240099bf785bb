"""The grid's decision: which of the e-graph's ways to give tiles to cores are worth planning, and a schedule that takes one."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, replace
from math import prod

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Refused
from tile_eg.extract.memory import assign
from tile_eg.extract.schedule import Schedule, Storage, StorageId
from tile_eg.ir.index import BLOCK, Expr, evaluate, variables
from tile_eg.ir.tasks import tile_at
from tile_eg.ir.types import Level

COPIES = 3  # of UB: one tile is loaded, one is computed, one is stored
WAVES = 32  # as many turns of all cores are looked at


def orders(schedule: Schedule, chip: Chip, at_once: int, most: int | None = 3) -> list[Node]:
    """The grids of a persistent kernel that are worth a plan: the grid's own order first, then those that ask HBM for least.

    `at_once` blocks run side by side. `most` is how many there are at most (None: all). Where L2 holds all tensors, no order asks
    for less than the grid's own.
    """
    offered = [g for g in schedule.graph.grids if g.op == "Persistent" and g.payload[0] == at_once]
    if most is not None and _size(schedule) <= chip.l2_bytes:
        offered = [g for g in offered if not g.payload[1]]
    if len(offered) < 2 or most == 0:
        return offered[:most]
    traffic = Traffic(schedule, chip)
    return sorted(offered, key=lambda g: (g.payload[1] > 0, *traffic.bytes(g), g.payload[1:]))[:most]


def _size(schedule: Schedule) -> int:
    """Bytes of all tensors."""
    return sum(prod(t.shape) * t.dtype.bytes for t in schedule.graph.values.tensors)


def with_grid(schedule: Schedule, grid: Node, chip: Chip) -> Schedule:
    """A copy of the schedule that gives its tiles to the cores so.

    Where there is room, what crosses pipes has two slots, and UB holds what several tiles need.
    """
    base = _copy(schedule, grid)
    if not base.persistent:
        return base
    if all(s.slots == 1 for s in base.storages.values() if s.level is Level.UB):
        base.copies = COPIES
    assign(base, chip)
    for storage in _crossing(base):
        trial = _copy(base, grid)
        ring = trial.storages[storage.id]
        ring.slots, ring.ring = 2, 0
        try:
            assign(trial, chip)
        except Refused:
            continue
        if (trial.shrunk, trial.crowded) == (base.shrunk, base.crowded):
            base = trial
    return base


def _copy(schedule: Schedule, grid: Node) -> Schedule:
    storages = {sid: replace(s) for sid, s in schedule.storages.items()}
    return replace(schedule, storages=storages, peaks={}, addresses={}, grid=grid)


def _crossing(schedule: Schedule) -> list[Storage]:
    """Storages of one slot that one pipe fills and another one reads: while a tile's is read, the next tile's could be filled.

    Those that only a loop inside of the tile uses wait for each other from trip to trip anyway.
    """
    pipes: dict[StorageId, set[str]] = defaultdict(set)
    outside: set[StorageId] = set()
    for step, around in schedule.walk():
        for s in (step.dst, *step.srcs):
            pipes[s].add(step.pipe)
            outside |= set() if around else {s}
    alone = [s for s in schedule.storages.values() if s.slots == 1 and not (s.level is Level.UB and schedule.copies > 1)]
    found = [s for s in alone if len(pipes[s.id]) > 1 and s.id in outside]
    return sorted(found, key=lambda s: (s.slot_bytes, s.id))


@dataclass(frozen=True)
class _Load:
    """Where a load starts by the tile, and its bytes in all trips of one tile."""

    offset: Expr
    bytes: int

    @staticmethod
    def of(graph: Graph, node: Node) -> _Load:
        tile = graph.where[node.cls].tile
        return _Load(node.payload[-4], tile.rows * tile.cols * tile.dtype.bytes * graph.total_trips(node.region))

    def start(self, tile: int) -> int:
        """The first element, in the first trip of every loop."""
        return evaluate(self.offset, dict.fromkeys(variables(self.offset), 0) | {BLOCK: tile})


class Traffic:
    """What an order of tiles brings from HBM: bands of tensors, as whole tiles touch them, in an L2 that forgets the oldest."""

    def __init__(self, schedule: Schedule, chip: Chip) -> None:
        graph = schedule.graph
        self.grid = tuple(e for e in graph.values.grid if e > 1) or (graph.values.blocks,)
        self.tiles, self.l2_bytes = prod(self.grid), chip.l2_bytes
        self.loads = [_Load.of(graph, n) for n in schedule.nodes if n.op in ("GmToL1", "GmToUB")]
        self.known: dict[int, list[tuple[int, int]]] = {}

    def bytes(self, grid: Node) -> tuple[int, int]:
        """In the first turns of the cores: the bytes that HBM brings, and those that each turn of all cores asks for."""
        blocks, window, along = grid.payload
        held: OrderedDict[tuple[int, int], int] = OrderedDict()
        missed = asked = kept = 0
        for first in range(0, min(self.tiles, WAVES * blocks), blocks):
            turns = range(first, min(self.tiles, first + blocks))
            for at in dict.fromkeys(at for t in turns for at in self._starts(tile_at(t, self.grid, window, along))):
                size = self.loads[at[0]].bytes
                asked += size
                if at not in held:
                    held[at], missed, kept = size, missed + size, kept + size
                held.move_to_end(at)
            while kept > self.l2_bytes:
                kept -= held.popitem(last=False)[1]
        return missed, asked

    def _starts(self, tile: int) -> list[tuple[int, int]]:
        """Each load by its number, and where it starts for a tile."""
        if tile not in self.known:
            self.known[tile] = [(i, load.start(tile)) for i, load in enumerate(self.loads)]
        return self.known[tile]
