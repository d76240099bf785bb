"""From a schedule to a Program without flags: buffers at their addresses, and each step as instructions on windows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_eg.chips import Chip
from tile_eg.emit.lower.held import held_by
from tile_eg.emit.lower.joined import Joined
from tile_eg.emit.lower.moves import moved
from tile_eg.emit.lower.products import Products
from tile_eg.emit.lower.storages import Storages
from tile_eg.emit.lower.tasks import TaskLoop
from tile_eg.emit.lower.vectors import computed
from tile_eg.extract import LoopStep, Schedule, Step
from tile_eg.extract.next_tile import next_loads
from tile_eg.extract.schedule import Item
from tile_eg.extract.statements import statement
from tile_eg.ir.index import ONE, SUB, Expr, both, const, less, substitute, var, wrap
from tile_eg.ir.program import AIC, AIV, Gm, Instr, Loop, Node, Operand, Program, Tile, When
from tile_eg.ir.program.held import Held
from tile_eg.ir.program.tasks import renamed
from tile_eg.ir.sharing import Itself, once
from tile_eg.ir.sizes import usual
from tile_eg.ops.physical import TERMS, Cube, Move, Vector
from tile_eg.ops.records import changed
from tile_eg.ops.types import Level


def plan(schedule: Schedule, chip: Chip) -> Program:
    """The schedule's program: addresses as planned, instructions in order, no flags yet."""
    places = tuple(tuple(vars(s).values()) for s in schedule.storages.values())
    planned = tuple(schedule.peaks.items()), tuple(schedule.addresses.items()), schedule.shrunk
    return once("lowered", (Itself(schedule), chip, places, planned), lambda: Lowering(schedule, chip).program())


class Lowering:
    """Lowers one schedule."""

    def __init__(self, schedule: Schedule, chip: Chip) -> None:
        self.schedule, self.chip, self.values = schedule, chip, schedule.graph.values
        self.storages = Storages(schedule, chip)
        self.products = Products(self.storages)
        self.joined = Joined.of(schedule, self.storages.tasks) if schedule.joined and self.storages.tasks else None
        self.alone = False

    def program(self) -> Program:
        cube, vector = self._stream(AIC), self._stream(AIV)
        kind = "AIC_ONLY" if not vector else "AIV_ONLY" if not cube else f"MIX_AIC_1_{2 if self.storages.halves else 1}"
        used = (*self.storages.buffers.values(), *self.storages.views.values(), *self.products.buffers)
        blocks = self.storages.tasks.blocks if self.storages.tasks else self.values.blocks
        sizes = self.values.sizes
        if sizes and self.storages.tasks:
            sizes = replace(sizes, blocks=wrap(blocks))
        made = Program(
            self.values.name, self.chip.name, kind, self.values.tensors, usual(blocks), self.storages.halves,
            self.schedule.peaks.get(Level.WS, 0), used, cube, vector, self.values.shared,
            () if self.storages.tasks else self.storages.counts, sizes, self.values.numbers, self.values.wholes,
        )  # fmt: skip
        return self.joined.named(made) if self.joined else made

    # ---- streams ----

    def _stream(self, core: str) -> tuple[Node, ...]:
        top, tasks = self.schedule.top, self.storages.tasks
        before = self._items([i for i in top if self.schedule.before_tiles(i)], core, ())
        of_tile = [i for i in top if not self.schedule.before_tiles(i)]
        if self.joined:
            (loop,) = (item for item in of_tile if isinstance(item, LoopStep))
            return (*before, self.joined.around(self._items(loop.body, core, (loop,))))
        nodes = self._items(of_tile, core, ())
        if not tasks or not nodes:
            return (*before, *nodes)
        ahead = next_loads(self.schedule) if self.schedule.prefetched else {}
        if not ahead:
            return (*before, tasks.around(tasks.this(nodes)))
        first, body = self._with_next(tasks, ahead, core)
        return (*before, *first, tasks.around(body))

    def _with_next(self, tasks: TaskLoop, ahead: dict[int, list[Step]], core: str) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """The loads of the first tile, and the body of a tile with the loads of the next one in it."""
        loads = [step for steps in ahead.values() for step in steps]
        body: list[Node] = []
        for at, item in enumerate([None, *self.schedule.top]):
            if item is not None and item not in loads and not self.schedule.before_tiles(item):
                body += tasks.this(self._items([item], core, ()))
            body += tasks.next(self._items(ahead.get(at, []), core, ()))
        return tasks.first(self._items(loads, core, ())), tuple(body)

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
            until = self.storages.trips(item) + item.skew if item.loop in self.values.counts else None
            return Loop(name, item.trips + item.skew, body, until=until)
        panel, inside = self.storages.panels(item.loop)
        loads = renamed(tuple(n for n in body if self._brings_several(n)), {name: panel * item.ahead})
        rest = renamed(tuple(n for n in body if not self._brings_several(n)), {name: panel * item.ahead + inside})
        return Loop(str(panel), item.trips // item.ahead, (*loads, Loop(str(inside), item.ahead, rest)))

    def _brings_several(self, node: Node) -> bool:
        return (
            isinstance(node, Instr)
            and node.op == "gm_to_l1"
            and isinstance(node.dst, Tile)
            and node.dst.buffer in self.storages.ahead
        )

    def _append(self, out: list[Node], step: Step, around: tuple[LoopStep, ...]) -> None:
        """Adds a step's instructions, under the guard of its lag where the loop is skewed. A product of a steady schedule has a
        guard of its own, around which flags can stand: what comes to its slots in L0 next may have another one."""
        nodes = self.step(step, around)
        if not nodes:
            return
        if not around or not around[-1].skew:
            out += nodes
            return
        loop = around[-1]
        guard = self.joined.guard(step) if self.joined else self._guard(step, loop)
        alone = self.schedule.steady and isinstance(TERMS[step.node.op], Cube)
        if out and isinstance(out[-1], When) and out[-1].condition == guard and not (alone or self.alone):
            out[-1] = When(guard, (*out[-1].body, *nodes))
        else:
            out.append(When(guard, tuple(nodes)))
        self.alone = alone

    def _guard(self, step: Step, loop: LoopStep) -> Expr:
        """In which trips of a skewed loop a step is done."""
        trip = var(self.values.variables[loop.loop])
        return both(
            less(step.lag - 1, trip) if step.lag else ONE,
            less(trip, self.storages.trips(loop) + step.lag) if step.lag < loop.skew else ONE,
        )

    # ---- one step ----

    def step(self, step: Step, around: tuple[LoopStep, ...]) -> list[Node]:
        """The instructions of a step; its own trip is the loop's less its lag."""
        op = step.node.op
        if op == "ZeroL0C":
            return []
        nodes: list[Node]
        match TERMS[op]:
            case Cube():
                nodes = self.products.lower(step, around)
            case Move() as term:
                nodes = self.products.by_windows(step, moved(self.storages, step, term))
            case Vector() as term:
                nodes = [computed(self.storages, step, term)]
        trip = (
            {self.values.variables[around[-1].loop]: var(self.values.variables[around[-1].loop]) - step.lag}
            if around and step.lag
            else {}
        )
        held = held_by(self.storages, step, around)
        made = [self._finish(n, step, trip, held, bool(self.joined and around)) for n in nodes]
        return self._of_both(made) if self.values.tile_each and step.core == AIC else made

    def _of_both(self, nodes: list[Node]) -> list[Node]:
        """What the cube core does for the tiles of both vector cores; once where that is the same."""
        first, second = (renamed(tuple(nodes), {SUB: const(sub)}) for sub in range(2))
        return [*first] if first == second else [*first, *second]

    def _finish(self, node: Node, step: Step, trip: dict[str, Expr], held: Held | None, joined: bool) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(self._finish(n, step, trip, held, joined) for n in node.body))
        assert isinstance(node, Instr)
        span = statement(self.schedule.graph, step.node)
        result = isinstance(node.dst, Gm) or self.storages.names.get(step.dst) == node.dst.buffer  # type: ignore[arg-type]
        made = changed(node, span=span, rules=step.node.rules, held=held if result else None)
        if self.joined and joined:
            return self.joined.at(made, step)
        return _shift(made, trip) if trip else made


def _shift(node: Instr, trip: dict[str, Expr]) -> Instr:
    """The instruction of an earlier trip."""

    def operand(o: Operand) -> Operand:
        if isinstance(o, Gm):
            return changed(o, offset=substitute(o.offset, trip))
        return Tile(o.buffer, *(substitute(e, trip) for e in (o.slot, o.row, o.col)))

    fields = {f: substitute(getattr(node, f), trip) for f in ("rows", "cols", "depth", "init", "bound", "when", "unit")}
    scratch, srcs = operand(node.scratch) if node.scratch else None, tuple(map(operand, node.srcs))
    held = node.held and node.held.changed(lambda e: substitute(e, trip))
    return changed(node, dst=operand(node.dst), srcs=srcs, scratch=scratch, held=held, **fields)
