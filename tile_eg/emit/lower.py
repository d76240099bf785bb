"""From a schedule to a Program without flags: buffers at their addresses, and each step as instructions on windows of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tile_eg.chips import Chip
from tile_eg.emit.moves import moved, shared
from tile_eg.emit.products import Products
from tile_eg.emit.tasks import TaskLoop, counts
from tile_eg.emit.units import by_windows, handovers
from tile_eg.extract import LoopStep, Schedule, Step, Storage
from tile_eg.extract.masks import needed
from tile_eg.extract.pricing import choice_form
from tile_eg.extract.schedule import Item, StorageId
from tile_eg.ir.index import ONE, SUB, ZERO, Expr, both, const, less, substitute, var
from tile_eg.ir.program import AIC, AIV, Buffer, Gm, Instr, Loop, Node, Operand, Program, Tile, When
from tile_eg.ir.tasks import free_names, renamed
from tile_eg.ir.types import Level
from tile_eg.ops.physical import TERMS, Cube, Move, Vector


def plan(schedule: Schedule, chip: Chip) -> Program:
    """The schedule's program: addresses as planned, instructions in order, no flags yet."""
    return Lowering(schedule, chip).program()


def buffer_of(s: Storage, addresses: tuple[int, ...], name: str) -> Buffer:
    layout = "nz" if s.level in (Level.L1, Level.L0C) else "nd"
    block = 32 // s.dtype.bytes
    pitch = -(-s.cols // block) * block if layout == "nd" else s.cols
    return Buffer(name, s.level, s.dtype, s.rows, s.cols, pitch, layout, len(addresses), addresses, s.share is not None)


class Lowering:
    """Lowers one schedule."""

    def __init__(self, schedule: Schedule, chip: Chip) -> None:
        self.schedule, self.chip, self.values = schedule, chip, schedule.graph.values
        self.halves = any(s.share is not None for s in schedule.storages.values())
        self.tasks = TaskLoop.of(schedule)
        self.counts = counts(schedule)
        self.names = self._names()
        self.dtypes = {t.name: t.dtype for t in self.values.in_gm}
        self.buffers = {
            sid: buffer_of(s, schedule.addresses[sid], self.names[sid])
            for sid, s in schedule.storages.items()
            if sid in schedule.addresses
        }
        self.ahead = {self.names[sid] for sid, s in schedule.storages.items() if s.ahead > 1}
        self.products = Products(self)
        found = handovers(schedule, chip.architecture)
        self.handovers = {s: h for s, h in found.items() if self.products.whole(h.product)}

    def program(self) -> Program:
        cube, vector = self._stream(AIC), self._stream(AIV)
        kind = "AIC_ONLY" if not vector else "AIV_ONLY" if not cube else f"MIX_AIC_1_{2 if self.halves else 1}"
        used = (*self.buffers.values(), *self.products.buffers)
        blocks = self.tasks.blocks if self.tasks else self.values.blocks
        return Program(
            self.values.name, self.chip.name, kind, self.values.tensors, blocks, self.halves,
            self.schedule.peaks.get(Level.WS, 0), used, cube, vector, self.values.shared,
            () if self.tasks else self.counts,
        )  # fmt: skip

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

    # ---- streams ----

    def _stream(self, core: str) -> tuple[Node, ...]:
        top = self.schedule.top
        before = self._items([i for i in top if self.schedule.before_tiles(i)], core, ())
        nodes = self._items([i for i in top if not self.schedule.before_tiles(i)], core, ())
        return (*before, self.tasks.around(nodes)) if self.tasks and nodes else nodes

    def _items(self, items: Sequence[Item], core: str, around: tuple[LoopStep, ...]) -> tuple[Node, ...]:
        out: list[Node] = []
        for item in items:
            if isinstance(item, LoopStep):
                if body := self._items(item.body, core, (*around, item)):
                    out.append(self._loop(item, body))
            elif item.core == core:
                self._append(out, item, around)
        return tuple(out)

    def _loop(self, item: LoopStep, body: tuple[Node, ...]) -> Loop:
        """A loop; where loads bring the tiles of several trips, one over these loads around one over the trips that use them."""
        name = self.values.variables[item.loop]
        if item.ahead == 1:
            until = self.trips(item) + item.skew if item.loop in self.values.counts else None
            return Loop(name, item.trips + item.skew, body, until=until)
        panel, inside = self._panels(item.loop)
        loads = renamed(tuple(n for n in body if self._brings_several(n)), {name: panel * item.ahead})
        rest = renamed(tuple(n for n in body if not self._brings_several(n)), {name: panel * item.ahead + inside})
        return Loop(str(panel), item.trips // item.ahead, (*loads, Loop(str(inside), item.ahead, rest)))

    def _panels(self, loop: int) -> tuple[Expr, Expr]:
        """Which load of several trips' tiles it is, and which of these trips."""
        names = self.values.variables
        wanted = f"{names[loop]}_panel", f"{names[loop]}_in"
        free = free_names(wanted, names.values())
        return var(free[wanted[0]]), var(free[wanted[1]])

    def _brings_several(self, node: Node) -> bool:
        return isinstance(node, Instr) and node.op == "gm_to_l1" and isinstance(node.dst, Tile) and node.dst.buffer in self.ahead

    def _append(self, out: list[Node], step: Step, around: tuple[LoopStep, ...]) -> None:
        """Adds a step's instructions, under the guard of its lag where the loop is skewed."""
        nodes = self.step(step, around)
        if not nodes:
            return
        if not around or not around[-1].skew:
            out += nodes
            return
        loop = around[-1]
        trip = var(self.values.variables[loop.loop])
        guard = both(
            less(step.lag - 1, trip) if step.lag else ONE,
            less(trip, self.trips(loop) + step.lag) if step.lag < loop.skew else ONE,
        )
        if out and isinstance(out[-1], When) and out[-1].condition == guard:
            out[-1] = When(guard, (*out[-1].body, *nodes))
        else:
            out.append(When(guard, tuple(nodes)))

    def trips(self, loop: LoopStep) -> Expr:
        """The trips of a loop, without those that its skew adds: a number, or the name of one."""
        count = self.values.counts.get(loop.loop)
        return const(loop.trips) if count is None else next(var(let.name) for let in self.counts if let.value == count)

    # ---- one step ----

    def step(self, step: Step, around: tuple[LoopStep, ...]) -> list[Node]:
        """The instructions of a step; its own trip is the loop's less its lag."""
        op = step.node.op
        if op == "ZeroL0C":
            return []
        if isinstance(TERMS[op], Cube):
            nodes = self.products.lower(step, around)
        else:
            nodes = by_windows(self, step, _instruction(self, step))
        trip = (
            {self.values.variables[around[-1].loop]: var(self.values.variables[around[-1].loop]) - step.lag}
            if around and step.lag
            else {}
        )
        return [self._finish(n, step, trip) for n in nodes]

    def _finish(self, node: Node, step: Step, trip: dict[str, Expr]) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(self._finish(n, step, trip) for n in node.body))
        assert isinstance(node, Instr)
        held, chosen = self.schedule.graph.where, step.node
        where = held.get(chosen.cls) or next((held[c] for c in reversed(chosen.children) if c in held), None)
        span = self.values.spans.get(where.tile.term) if where and where.tile.term else None
        made = replace(node, span=span, rules=step.node.rules)
        return _shift(made, trip) if trip else made

    def tile(self, sid: StorageId) -> Tile:
        """The whole current slot of a storage; of one that holds several trips' tiles, where this trip's begins."""
        s = self.schedule.storages[sid]  # type: ignore[index]
        at = self._panels(s.region)[1] * (s.cols // s.ahead) if s.ahead > 1 else ZERO
        return Tile(self.names[sid], self._turn(s), col=at)  # type: ignore[index]

    def _turn(self, s: Storage) -> Expr:
        """Which slot of a ring: its loop's trips, counted on from tile to tile where all tiles have as many."""
        if s.level is Level.UB and self.schedule.copies > 1 and s.id not in self.schedule.once:
            return self.turns(1, self.schedule.copies) % self.schedule.copies
        if s.ring is None or s.slots == 1:
            return ZERO
        if s.ring == 0:
            return self.turns(1, s.slots) % s.slots
        name, trips = self.values.variables[s.ring], self.values.trips[s.ring] // s.ahead
        trip = self._panels(s.ring)[0] if s.ahead > 1 else var(name)
        alone = self.values.parents[s.ring] != 0 or s.ring in self.values.counts
        return (trip if alone else trip + self.turns(trips, s.slots)) % s.slots

    def turns(self, each: int, slots: int) -> Expr:
        """How far a ring of so many slots has turned in the tiles before this one, which turn it `each` times."""
        return var(self.tasks.names["task"]) * (each % slots) if self.tasks else ZERO

    def valid(self, step: Step, sid: StorageId | None = None, cls: int | None = None) -> tuple[Expr, Expr]:
        """Valid rows and cols of a class's value, on one core."""
        where = self.schedule.graph.where[cls if cls is not None else step.node.cls]
        return shared(where, where.tile.vrows, where.tile.vcols)

    def cols_of(self, product: Step) -> int:
        """Columns of a product's result."""
        return self.products.tile_of(product).cols

    def form(self, cls: int) -> str:
        """How a copy of a class's value runs: flat where its rows lie without gaps."""
        tile = self.schedule.graph.where[cls].tile
        dense = tile.vcols.value == tile.cols and tile.cols * tile.dtype.bytes % 32 == 0
        return "flat" if tile.rows == 1 or dense else "rows"

    def only_once(self, share: int | None) -> Expr:
        """A whole value is held by both vector cores: one of them stores it."""
        return less(var(SUB), 1) if self.halves and share is None else ONE


def _shift(node: Instr, trip: dict[str, Expr]) -> Instr:
    """The instruction of an earlier trip."""

    def operand(o: Operand) -> Operand:
        if isinstance(o, Gm):
            return replace(o, offset=substitute(o.offset, trip))
        return Tile(o.buffer, *(substitute(e, trip) for e in (o.slot, o.row, o.col)))

    fields = {f: substitute(getattr(node, f), trip) for f in ("rows", "cols", "depth", "init", "bound", "when", "unit")}
    scratch = operand(node.scratch) if node.scratch else None
    return replace(node, dst=operand(node.dst), srcs=tuple(map(operand, node.srcs)), scratch=scratch, **fields)  # type: ignore[arg-type]


def _instruction(low: Lowering, step: Step) -> Instr:
    """The one instruction of a step that is no product."""
    term = TERMS[step.node.op]
    if isinstance(term, Move):
        return moved(low, step, term)
    assert isinstance(term, Vector)
    return _KINDS[term.kind](low, step, term)


def _elementwise(low: Lowering, step: Step, term: Vector) -> Instr:
    """All sources in order, the extents of the result; a source that is overwritten is the destination itself."""
    payload = step.node.payload
    sources = tuple(map(low.tile, step.srcs))[: None if term.overwrites is None else term.overwrites]
    fields = {name: of(payload) for name, of in term.fields.items()}
    return Instr(
        term.instruction(payload), low.tile(step.dst), sources, *low.valid(step), form=term.form(payload), **fields
    )  # type: ignore[arg-type]


def _reduction(low: Lowering, step: Step, term: Vector) -> Instr:
    payload, sources = step.node.payload, tuple(map(low.tile, step.srcs))
    rows, cols = low.valid(step, cls=step.node.children[0])
    scratch = low.tile(step.scratch) if step.scratch is not None else None
    return Instr(
        term.instruction(payload), low.tile(step.dst), sources, rows, cols, form=term.form(payload), scratch=scratch
    )


def _choice(low: Lowering, step: Step, term: Vector) -> Instr:
    """A comparison and a selection by its bits; in place, only where it changes something."""
    payload, where = step.node.payload, low.schedule.graph.where
    assert step.scratch is not None
    fields = {name: of(payload) for name, of in term.fields.items()}
    form = choice_form(where[step.node.children[0]], where[step.node.cls])
    made = Instr(
        term.instruction(payload), low.tile(step.dst), tuple(map(low.tile, step.srcs)), *low.valid(step), form=form,
        scratch=low.tile(step.scratch), **fields,
    )  # fmt: skip
    return made if term.overwrites is None else replace(made, when=needed(low.schedule.graph, step.node))


def _ramp(low: Lowering, step: Step, term: Vector) -> Instr:
    """All of the buffer, its padding included: what reads whole rounds finds numbers there."""
    where, buffer = low.schedule.graph.where[step.node.cls], low.buffers[step.dst]  # type: ignore[index]
    i, j = where.tile.ramp or (0, 0)
    h, w = where.shape
    start = var(SUB) * (i * h if where.share == 0 else j * w if where.share == 1 else 0)
    cols = buffer.cols if buffer.rows == 1 else buffer.pitch
    name = term.instruction(step.node.payload)
    made = Instr(name, low.tile(step.dst), (), const(buffer.rows), const(cols), bound=start, steps=(i, j))
    return replace(made, when=_wanted(low, step))


def _wanted(low: Lowering, step: Step) -> Expr:
    """1 where positions are looked at: masks in place in the same trip of the same loop look at them only where they are made."""
    readers = [s for s, _ in low.schedule.walk() if step.dst in s.srcs]
    alike = all((s.node.op, s.region, s.lag) == ("VMaskOn", step.region, step.lag) for s in readers)
    wanted = {needed(low.schedule.graph, s.node) for s in readers} if alike else set()
    return wanted.pop() if len(wanted) == 1 else ONE


def _fill(low: Lowering, step: Step, term: Vector) -> Instr:
    where, buffer = low.schedule.graph.where[step.node.cls], low.buffers[step.dst]  # type: ignore[index]
    rows, cols = buffer.rows, buffer.cols if buffer.rows == 1 else buffer.pitch
    name = term.instruction(step.node.payload)
    return Instr(name, low.tile(step.dst), (), const(rows), const(cols), scalar=where.tile.fill or 0.0)


def _spread(low: Lowering, step: Step, term: Vector) -> Instr:
    rows, _ = low.valid(step)
    cols = const(low.buffers[step.dst].cols)  # type: ignore[index]
    name, form = term.instruction(step.node.payload), term.form(step.node.payload)
    return Instr(name, low.tile(step.dst), (low.tile(step.srcs[0]),), rows, cols, form=form)


def _copy(low: Lowering, step: Step, term: Vector) -> Instr:
    rows, cols = low.valid(step)
    name, form = term.instruction(step.node.payload), low.form(step.node.cls)
    return Instr(name, low.tile(step.dst), (low.tile(step.srcs[0]),), rows, cols, form=form)


_KINDS: dict[str, Callable[[Lowering, Step, Vector], Instr]] = {
    "elementwise": _elementwise, "reduction": _reduction, "choice": _choice, "position": _ramp, "fill": _fill, "spread": _spread,
    "copy": _copy,
}  # fmt: skip
