"""The grid's decision: which of the e-graph's ways to give tiles to cores are worth planning, and a schedule that takes one."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from dataclasses import replace
from math import prod

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Refused
from tile_eg.extract.memory import assign
from tile_eg.extract.schedule import Schedule, Step, Storage, StorageId
from tile_eg.ir.index import BLOCK, Expr, variables
from tile_eg.ir.program.tasks import tile_at
from tile_eg.ops.physical import LOADS, MOVES
from tile_eg.ops.records import changed, record
from tile_eg.ops.types import Level
from tile_eg.timeline.expressions import compiled

COPIES = 3  # of UB: one tile is loaded, one is computed, one is stored
CLEARLY = 0.99  # times as long: an order that is tried beside the grid's own
WAVES = 32  # as many turns of all cores are looked at


def orders(schedule: Schedule, chip: Chip, at_once: int, most: int | None = 3) -> list[Node]:
    """The grids of a persistent kernel that are worth a plan, the quickest loads first: the grid's own order, and what beats it.

    `at_once` blocks run side by side. `most` is how many there are at most (None: all that the rules offer).
    """
    offered = [g for g in schedule.graph.grids if g.op == "Persistent" and g.payload[0] == at_once]
    plain = next((g for g in offered if not g.payload[1]), None)
    if most == 0 or len(offered) < 2:
        return offered[:most]
    traffic = Traffic(schedule, chip)
    cost = {g: traffic.cost(g) for g in offered}
    ranked = sorted(offered, key=lambda g: (*cost[g], g.payload[1:]))
    if most is None or plain is None:
        return ranked[:most]
    better = [g for g in ranked if cost[g][0] < CLEARLY * cost[plain][0]]
    return [*better[: most - 1], plain]


def with_grid(schedule: Schedule, grid: Node, chip: Chip) -> Schedule:
    """A copy of the schedule that gives its tiles to the cores so: the first of `with_grids`."""
    return with_grids(schedule, grid, chip)[0]


def with_grids(schedule: Schedule, grid: Node, chip: Chip) -> list[Schedule]:
    """Copies of the schedule that give its tiles to the cores so, by how tiles that follow each other share UB.

    Where UB has room for all that several tiles need, they take turns; or what crosses pipes has two slots. What all tiles share
    is made once where there is room to keep it.
    """
    base = _copy(schedule, grid)
    if not base.persistent:
        return [base]
    in_ub = [s for s in base.storages.values() if s.level is Level.UB]
    alone = in_ub and all(s.slots == 1 and not s.given for s in in_ub)
    turns = _roomiest(base, chip, COPIES) if alone else base
    found = [turns] if turns.copies > 1 else []
    return [_with_rings(s, chip) for s in (*found, _roomiest(base, chip, 1))]


def in_halves(schedule: Schedule) -> Schedule | None:
    """The schedule with its one product stepped in halves of its columns, as deep as they can be; None where no rule offers them.

    Where L0C holds one result, the fixpipe then empties a half of it while the cube fills the other one.
    """
    cuts = [n for n in schedule.nodes if n.op == "L0"]
    if len(cuts) != 1 or all(s.slots > 1 for s in schedule.storages.values() if s.level is Level.L0C):
        return None
    tile, _, rows, *_ = cuts[0].payload
    halves = [n for n in schedule.graph.classes[cuts[0].cls] if n.payload[2] == rows and 2 * n.payload[3] == tile.cols]
    if not halves or cuts[0] in halves:
        return None
    deepest = max(halves, key=lambda n: n.payload[4])
    return replace(schedule, nodes=[deepest if n is cuts[0] else n for n in schedule.nodes])


def _roomiest(schedule: Schedule, chip: Chip, copies: int) -> Schedule:
    """The schedule with up to so many copies of UB and what all tiles share made once, unless less then has room."""
    out = []
    most, least = shared_by_tiles(schedule), shared_by_tiles(schedule, scratch=False)
    for once in sorted({most, least, frozenset[int]()}, key=len, reverse=True):
        trial = replace(_copy(schedule, schedule.grid), copies=copies, once=once)
        try:
            assign(trial, chip)
        except Refused:
            if once:
                continue
            raise
        out.append(trial)
    return min(out, key=lambda s: (s.shrunk, s.crowded, -min(2, s.copies)))


def shared_by_tiles(schedule: Schedule, scratch: bool = True) -> frozenset[int]:
    """The storages in UB and L1 whose contents are the same for every tile: nothing that made them knows the tile, or is written.

    With those that instructions keep beside such a result, or without what has them.
    """
    written = Counter(s for step, _ in schedule.walk() for s in (step.dst, step.scratch) if s is not None)
    found: set[int] = set()
    for step in schedule.top:
        if not isinstance(step, Step) or (step.scratch is not None and not scratch):
            continue
        if isinstance(step.dst, int) and written[step.dst] == 1:
            constant = all(s in found or (isinstance(s, str) and not written[s]) for s in step.srcs)
            stays = schedule.storages[step.dst].level in (Level.UB, Level.L1)
            if constant and stays and not _knows_tile(schedule.graph, step.node):
                found |= {step.dst} if step.scratch is None else {step.dst, step.scratch}
    return frozenset(found)


def _knows_tile(graph: Graph, node: Node) -> bool:
    """Whether what an instruction reads, or how much of it is valid, depends on the tile."""
    tile = graph.demands[node.cls].tile
    return any(BLOCK in variables(e) for e in (*node.payload, tile.vrows, tile.vcols) if isinstance(e, Expr))


def _with_rings(base: Schedule, chip: Chip) -> Schedule:
    """The schedule with two slots for what crosses pipes, where there is room and nothing else has to move closer."""
    for storage in _crossing(base):
        trial = _copy(base, base.grid)
        ring = trial.storages[storage.id]
        ring.slots, ring.ring = 2, 0
        try:
            assign(trial, chip, like=base)
        except Refused:
            continue
        base = trial
    return base


def _copy(schedule: Schedule, grid: Node | None) -> Schedule:
    storages = {sid: changed(s) for sid, s in schedule.storages.items()}
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
    turning = {i for i, s in schedule.storages.items() if s.level is Level.UB and schedule.copies > 1} | schedule.once
    alone = [s for s in schedule.storages.values() if s.slots == 1 and not s.given and s.id not in turning]
    found = [s for s in alone if len(pipes[s.id]) > 1 and s.id in outside]
    return sorted(found, key=lambda s: (s.slot_bytes, s.id))


@record
class _Load:
    """Where a load starts by the tile, its bytes in all trips of one tile, and the path that it takes."""

    offset: Expr
    bytes: int
    path: str

    @staticmethod
    def of(graph: Graph, node: Node) -> _Load:
        tile = graph.demands[node.cls].tile
        path = "gm_to_ub" if MOVES[node.op].target == "UB" else "gm_to_l1_nd2nz"
        return _Load(node.payload[-4], tile.rows * tile.cols * tile.dtype.bytes * graph.total_trips(node.region), path)

    def start(self, tile: int) -> int:
        """The first element, in the first trip of every loop."""
        return compiled(self.offset)(dict.fromkeys(variables(self.offset), 0) | {BLOCK: tile})


class Traffic:
    """What an order of tiles makes of the loads: all that one load brings for one tile is a piece, and L2 forgets the oldest."""

    def __init__(self, schedule: Schedule, chip: Chip) -> None:
        graph = schedule.graph
        self.grid = tuple(e for e in graph.values.grid if e > 1) or (graph.values.blocks,)
        self.tiles, self.chip = prod(self.grid), chip
        self.loads = [_Load.of(graph, n) for n in schedule.nodes if n.op in LOADS]
        self.known: dict[int, list[int]] = {}

    def cost(self, grid: Node) -> tuple[float, int]:
        """In the first turns of the cores: cycles of their loads, and the bytes that each turn of all cores asks L2 for."""
        blocks, window, along = grid.payload
        l2, cycles, asked = _L2(self.chip.l2_reach), 0.0, 0
        for first in range(0, min(self.tiles, WAVES * blocks), blocks):
            turns = range(first, min(self.tiles, first + blocks))
            starts = zip(*(self._starts(tile_at(t, self.grid, window, along)) for t in turns), strict=True)
            pieces = [dict.fromkeys((i, at) for at in column) for i, column in enumerate(starts)]
            missed = sum(l2.missed(piece, load.bytes) for load, found in zip(self.loads, pieces, strict=True) for piece in found)
            served = sum(self._served(load, len(turns), len(found)) for load, found in zip(self.loads, pieces, strict=True))
            cycles += max(served, missed / self.chip.hbm_share(1))
            asked += sum(load.bytes * len(found) for load, found in zip(self.loads, pieces, strict=True))
        return cycles, asked

    def _served(self, load: _Load, cores: int, pieces: int) -> float:
        """Cycles of a load out of L2, which gives a line to one after the other of the cores that share a piece."""
        path = self.chip.path(load.path)
        same = load.bytes * (path.same_line / self.chip.rows.line + 1 / path.same_rate)
        return max(load.bytes / path.rate(cores), cores / pieces * same)

    def _starts(self, tile: int) -> list[int]:
        """Where each load starts for a tile."""
        if tile not in self.known:
            self.known[tile] = [load.start(tile) for load in self.loads]
        return self.known[tile]


class _L2:
    """Pieces of tensors by the order in which they were last asked for."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.bytes = capacity, 0
        self.held: OrderedDict[tuple[int, int], int] = OrderedDict()

    def missed(self, piece: tuple[int, int], size: int) -> int:
        """The bytes that HBM has to bring."""
        known = piece in self.held
        self.held[piece] = size
        self.held.move_to_end(piece)
        self.bytes += 0 if known else size
        while self.bytes > self.capacity:
            self.bytes -= self.held.popitem(last=False)[1]
        return 0 if known else size
