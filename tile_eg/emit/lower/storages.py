"""How instructions speak of a schedule's storages: the name and buffer of each, its window in the current trip, what is valid."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.chips import Chip
from tile_eg.egraph import Demand, Node
from tile_eg.emit.lower.tasks import TaskLoop, counts
from tile_eg.extract import LoopStep, Schedule, Step, Storage
from tile_eg.extract.schedule import StorageId
from tile_eg.ir.index import ONE, SUB, ZERO, Expr, const, less, maximum, minimum, var, wrap
from tile_eg.ir.program import Buffer, Tile
from tile_eg.ir.program.tasks import free_names
from tile_eg.ops.physical import ALIASES
from tile_eg.ops.records import record
from tile_eg.ops.types import Level


@record
class Seen:
    """How a tile is read where another one lies: from a row and a column on; in rows and columns of its own (`shape`), which
    begin with the other's element `first`."""

    row: Expr | int = 0
    col: int = 0
    shape: tuple[int, int] | None = None
    first: int = 0


class Storages:
    """The storages of one schedule."""

    def __init__(self, schedule: Schedule, chip: Chip) -> None:
        self.schedule, self.chip, self.values = schedule, chip, schedule.graph.values
        self.halves = self.values.tile_each or any(s.share is not None for s in schedule.storages.values())
        self.tasks = TaskLoop.of(schedule)
        self.counts = counts(schedule)
        self.names = self._names()
        self.parts, self.stays = self._parts(), self._stays()
        self.dtypes = {t.name: t.dtype for t in self.values.in_gm}
        self.buffers = {
            sid: buffer_of(s, schedule.addresses[sid], self.names[sid])
            for sid, s in schedule.storages.items()
            if sid in schedule.addresses
        }
        self.views: dict[str, Buffer] = {}
        self.ahead = {self.names[sid] for sid, s in schedule.storages.items() if s.ahead > 1}

    def _names(self) -> dict[int, str]:
        """A name for each storage: its buffer's in the source with its level, made unique."""
        taken: set[str] = {t.name for t in self.values.in_gm}
        out = {}
        for sid, s in self.schedule.storages.items():
            base = f"{s.name}_{s.level.lower()}"
            name, i = base, 2
            while name in taken:
                name, i = f"{base}{i}", i + 1
            taken.add(name)
            out[sid] = name
        return out

    def tile(self, sid: StorageId, loop: int | None = None) -> Tile:
        """The whole current slot of a storage, or that of a later loop's trip; of one that holds several trips' tiles, where this
        trip's begins."""
        s = self.schedule.storages[sid]  # type: ignore[index]
        at = self.panels(s.region)[1] * (s.cols // s.ahead) if s.ahead > 1 else ZERO
        return self._of_core(s, Tile(self.names[sid], self._turn(s, loop or s.ring), col=at))  # type: ignore[index]

    def _of_core(self, s: Storage, tile: Tile) -> Tile:
        """Of two tiles beside each other this vector core's: in the workspace the second one has the rows behind the first."""
        if s.tiles == 1:
            return tile
        if s.level is Level.WS:
            return replace(tile, row=tile.row + var(SUB) * s.rows)
        return replace(tile, slot=tile.slot * 2 + var(SUB))

    def source(self, step: Step, i: int) -> Tile:
        """What a step reads as its i-th source: the whole current slot of a storage, or from where a part of that begins; as the
        element type, and in the rows, that it reads."""
        cls = step.node.children[i]
        whole, at = self.tile(step.srcs[i], self.stays.get(cls)), self.parts.get(cls, Seen())
        return replace(whole, buffer=self._read_as(step.srcs[i], cls, at), row=whole.row + at.row, col=whole.col + at.col)

    def sources(self, step: Step) -> tuple[Tile, ...]:
        """All that a step reads."""
        return tuple(self.source(step, i) for i in range(len(step.srcs)))

    def pitch(self, t: Tile) -> int:
        """The elements between two rows of what a step reads."""
        known = {**{b.name: b for b in self.buffers.values()}, **self.views}
        return known[t.buffer].pitch

    def _read_as(self, sid: StorageId, cls: int, at: Seen) -> str:
        """The name of a storage's buffer, or of one in its place that has the element type of a class, and rows as it is seen."""
        name, held = self.names[sid], self.schedule.storages[sid]  # type: ignore[index]
        where = self.schedule.graph.demands.get(cls)
        if where is None or sid not in self.buffers or (where.tile.dtype == held.dtype and at.shape is None):
            return name
        seen = replace(self.buffers[sid], dtype=where.tile.dtype)  # type: ignore[index]
        if where.tile.dtype != held.dtype:
            name = f"{name}_{where.tile.dtype}"
        if at.shape is not None:
            rows, cols = at.shape
            name += f"_{rows}x{cols}" + (f"_from{at.first}" if at.first else "")
            addresses = tuple(a + at.first * held.dtype.bytes for a in seen.addresses)
            seen = replace(seen, rows=rows, cols=cols, pitch=cols, addresses=addresses)
        name = free_names((name,), {*self.names.values(), *self.dtypes}).popitem()[1]
        self.views[name] = replace(seen, name=name)
        return name

    def _parts(self) -> dict[int, Seen]:
        """Where in the tile that holds it each class of a part begins, and in which rows it is read."""
        pick = {n.cls: n for n in self.schedule.nodes}
        found = {n.cls: self._seen(n, pick) for n in self.schedule.nodes if n.op in ALIASES}
        return {cls: at for cls, at in found.items() if at != Seen()}

    def _seen(self, n: Node, pick: dict[int, Node]) -> Seen:
        """From the tile that holds a class up to it."""
        if n.op not in ALIASES:
            return Seen()
        below, demands = self._seen(pick[n.children[0]], pick), self.schedule.graph.demands
        if n.op == "Part":
            return replace(below, row=below.row + n.payload[0], col=below.col + n.payload[1])
        if n.op == "PanelOf":
            return replace(below, row=n.payload[0] + below.row)
        if n.op == "Reshaped":
            lying = below.shape[1] if below.shape else self._held_cols(n, pick)
            first = below.first + (wrap(below.row).args[0] * lying) + below.col
            return Seen(shape=demands[n.cls].shape, first=first)
        return below

    def _held_cols(self, n: Node, pick: dict[int, Node]) -> int:
        """The columns of the tile that holds a class."""
        while n.op in ALIASES:
            n = pick[n.children[0]]
        return self.schedule.graph.demands[n.cls].shape[1]

    def _stays(self) -> dict[int, int]:
        """By class of what an earlier loop loaded: the loop whose trip it is read in."""
        chosen = {n.cls: n for n in self.schedule.nodes}
        out: dict[int, int] = {}
        for n in self.schedule.nodes:
            below = n
            while below.op in ALIASES and n.cls not in out:
                if below.op == "Stays":
                    out[n.cls] = below.payload[0]
                below = chosen[below.children[0]]
        return out

    def _turn(self, s: Storage, loop: int | None) -> Expr:
        """Which slot of a ring: its loop's trips, counted on from tile to tile where all tiles have as many."""
        if s.level is Level.UB and self.schedule.copies > 1 and s.id not in self.schedule.once:
            return self.turns(1, self.schedule.copies) % self.schedule.copies
        if s.ring is None or s.slots == 1:
            return ZERO
        if s.ring == 0:
            return self.turns(1, s.slots) % s.slots
        trips = self.values.trips[s.ring] // s.ahead
        trip = self.panels(s.ring)[0] if s.ahead > 1 else var(self.values.variables[loop or s.ring])
        alone = self.values.parents[s.ring] != 0 or s.ring in self.values.counts
        return (trip if alone else trip + self.turns(trips, s.slots)) % s.slots

    def turns(self, each: int, slots: int) -> Expr:
        """How far a ring of so many slots has turned in the tiles before this one, which turn it `each` times."""
        return var(self.tasks.names["task"]) * (each % slots) if self.tasks else ZERO

    def panels(self, loop: int) -> tuple[Expr, Expr]:
        """Which load of several trips' tiles it is, and which of these trips."""
        names = self.values.variables
        wanted = f"{names[loop]}_panel", f"{names[loop]}_in"
        free = free_names(wanted, names.values())
        return var(free[wanted[0]]), var(free[wanted[1]])

    def trips(self, loop: LoopStep) -> Expr:
        """The trips of a loop, without those that its skew adds: a number, or the name of one."""
        count = self.values.counts.get(loop.loop)
        return const(loop.trips) if count is None else next(var(let.name) for let in self.counts if let.value == count)

    def stride(self, tensor: str, number: int) -> Expr | int:
        """The elements between two rows of a window of a tensor."""
        return self.values.sizes.stride(tensor, number) if self.values.sizes else number

    def valid(self, step: Step, sid: StorageId | None = None, cls: int | None = None) -> tuple[Expr, Expr]:
        """Valid rows and cols of a class's value, on one core."""
        where = self.schedule.graph.demands[cls if cls is not None else step.node.cls]
        return shared(where, where.tile.vrows, where.tile.vcols)

    def form(self, cls: int) -> str:
        """How a copy of a class's value runs: flat where its rows lie without gaps."""
        tile = self.schedule.graph.demands[cls].tile
        dense = tile.vcols.value == tile.cols and tile.cols * tile.dtype.bytes % 32 == 0
        return "flat" if tile.rows == 1 or dense else "rows"

    def only_once(self, share: int | None) -> Expr:
        """A whole value is held by both vector cores: one of them stores it."""
        return less(var(SUB), 1) if self.halves and share is None and not self.values.tile_each else ONE


def buffer_of(s: Storage, addresses: tuple[int, ...], name: str) -> Buffer:
    rows, halved = s.rows, s.share is not None
    if s.level is Level.WS:
        rows, halved = s.tiles * rows, halved or s.tiles > 1
    else:
        addresses = tuple(a + n * s.slot_bytes // s.tiles for a in addresses for n in range(s.tiles))
    layout = "pairs" if s.dtype.scale else "nz" if s.level in (Level.L1, Level.L0C) else "nd"
    block = 32 // s.dtype.bytes
    pitch = -(-s.cols // block) * block + s.gap if layout == "nd" else s.cols
    return Buffer(name, s.level, s.dtype, rows, s.cols, pitch, layout, len(addresses), addresses, halved)


def shared(where: Demand, rows: Expr, cols: Expr) -> tuple[Expr, Expr]:
    """What one core has of a tile's valid rows and cols."""
    if where.share == 0:
        return half(rows, where.tile.rows), cols
    return (rows, half(cols, where.tile.cols)) if where.share == 1 else (rows, cols)


def half(valid: Expr, size: int) -> Expr:
    """What one vector core has of `valid` elements when each takes size / 2 of them."""
    h = size // 2
    return const(h) if valid.value == size else maximum(0, minimum(h, valid - var(SUB) * h))
