"""A loop that goes on from tile to tile: which tile and trip each of its steps is at, and when it is done.

A step that is `lag` trips late is, in the first `lag` trips of a tile, at the last ones of the tile before. So one more round of
trips follows the block's last tile, in which only what is late is done.
"""

from __future__ import annotations

from dataclasses import replace

from tile_eg.emit.lower.tasks import TaskLoop
from tile_eg.extract import LoopStep, Schedule, Step
from tile_eg.extract.joined import rounds_of
from tile_eg.extract.schedule import FIRST, LAST
from tile_eg.ir.index import BLOCK, ONE, Expr, both, const, less, maximum, minimum, substitute, var, variables
from tile_eg.ir.program import Gm, Instr, Let, Loop, Node, Operand, Program, Tasks, Tile
from tile_eg.ir.program.tasks import free_names, in_order
from tile_eg.ops.records import record


@record
class Joined:
    """The loop `trips` of variable `trip` in the loop over tiles; `before` are the names of the tile before this one.

    Where tiles have other numbers of trips, a tile goes through `rounds` of its loop: a multiple of all its rings, as many as the
    skew or more. Some of the last ones may be no trip of it. What its first trip does a skew later may stand in the next tile's.
    """

    tasks: TaskLoop
    trip: str
    trips: int
    before: dict[str, str]
    skew: int
    rounds: int = 0

    @staticmethod
    def of(schedule: Schedule, tasks: TaskLoop) -> Joined:
        loop = next(x for x in schedule.top if isinstance(x, LoopStep))
        values = schedule.graph.values
        taken = {*values.variables.values(), *tasks.names.values()}
        counted = loop.loop in values.counts
        own = [let.name for let in tasks.counts]
        found = free_names([f"{n}_before" for n in ("turn", "band", "width", "step", "tile", "rounds", *own)], taken)
        names = {n.removesuffix("_before"): m for n, m in found.items()}
        rounds = rounds_of(schedule, loop) if counted else 0
        return Joined(tasks, values.variables[loop.loop], loop.trips, names, loop.skew, rounds)

    @property
    def task(self) -> Expr:
        return var(self.tasks.names["task"])

    @property
    def tiles(self) -> Expr:
        return var(self.tasks.names["tiles"])

    def guard(self, step: Step) -> Expr:
        """Where a step is done: at a tile that the block has, and in the trip of it that it is for."""
        if self.rounds:
            return self._counted(step)
        lag, last, trip = step.lag, self.trips - 1, var(self.trip)
        if step.at == FIRST:
            return self._in_trip(lag) if lag < self.trips else both(less(0, self.task), self._is(0))
        if step.at == LAST:
            return self._in_trip(last) if not lag else both(less(0, self.task), self._is(lag - 1))
        now = self.task * self.trips + trip
        return both(less(lag - 1, now) if lag else ONE, less(now, self.tiles * self.trips + lag))

    def _counted(self, step: Step) -> Expr:
        """The same where tiles have other numbers of trips."""
        at, trips = self._at(step), self._of(step, self.count, self.before[self.count])
        if step.at == FIRST and step.lag < self.skew:
            return both(self._is(step.lag), less(0, var(self.count)))
        if step.at == FIRST:
            return less(at, minimum(trips, 1))
        return both(less(at, trips), less(trips, at + 2)) if step.at == LAST else less(at, trips)

    @property
    def count(self) -> str:
        return self.tasks.counts[0].name

    def _of(self, step: Step, now: str, old: str) -> Expr:
        """What has one name for this tile, and another one for the tile before."""
        early = self._early(step)
        if early.value is None:
            return var(now) * less(step.lag - 1, var(self.trip)) + var(old) * early
        return var(old if early.value else now)

    def _at(self, step: Step) -> Expr:
        """The trip that a step is at; beyond the last one there is none."""
        early = self._early(step)
        return var(self.trip) - step.lag + var(self.before["rounds"]) * early if step.lag else var(self.trip)

    def _in_trip(self, trip: int) -> Expr:
        return both(less(self.task, self.tiles), self._is(trip))

    def _is(self, trip: int) -> Expr:
        """Whether it is this trip of the loop."""
        low = less(trip - 1, var(self.trip)) if trip else ONE
        return both(low, less(var(self.trip), trip + 1)) if self.rounds or trip < self.trips - 1 else low

    def _early(self, step: Step) -> Expr:
        """1 where a step is at the tile before."""
        if not step.lag or (not self.rounds and (step.lag == self.trips or step.at == LAST)):
            return const(min(step.lag, 1))
        inside = step.at == FIRST and not (self.rounds and step.lag == self.skew)
        return const(0) if inside else less(var(self.trip), step.lag)

    def _tile(self, step: Step) -> Expr:
        return self._of(step, self.tasks.names["tile"], self.before["tile"])

    def _trip(self, step: Step) -> Expr:
        if self.rounds:
            return const(0) if step.at == FIRST else self._at(step)
        late = (var(self.trip) + (self.trips - step.lag)) % self.trips if step.lag else var(self.trip)
        return {FIRST: const(0), LAST: const(self.trips - 1)}.get(step.at, late)

    def at(self, node: Instr, step: Step) -> Instr:
        """An instruction of a step, at the tile and the trip that the step is at."""
        place = {BLOCK: self._tile(step), self.trip: self._trip(step)}
        turn = {self.tasks.names["task"]: self.task - self._early(step)}

        def operand(o: Operand) -> Operand:
            if isinstance(o, Gm):
                return replace(o, offset=substitute(o.offset, place))
            slot = _later(o.slot, self.trip, step.lag) if self.trip in variables(o.slot) else substitute(o.slot, turn)
            return Tile(o.buffer, slot, substitute(o.row, place), substitute(o.col, place))

        fields = {f: substitute(getattr(node, f), place) for f in ("rows", "cols", "depth", "init", "bound", "when", "unit")}
        scratch, srcs = operand(node.scratch) if node.scratch else None, tuple(map(operand, node.srcs))
        held = node.held and node.held.changed(lambda e: substitute(e, place))
        return replace(node, dst=operand(node.dst), srcs=srcs, scratch=scratch, held=held, **fields)  # type: ignore[arg-type]

    def around(self, body: tuple[Node, ...]) -> Tasks:
        """The loop over the tiles of a block, and one round more."""
        made = self.tasks.around((self._loop(body),))
        last, names = self.tasks.end - 1, self.tasks.names
        lets = in_order(minimum(self.tasks.turn, last), self.tasks.grid, self.tasks.window, self.tasks.along, names)
        old = in_order(
            maximum(self.tasks.turn - self.tasks.blocks, 0), self.tasks.grid, self.tasks.window, self.tasks.along,
            {**names, **self.before},
        )
        own = self._counts() if self.rounds else []
        pairs = tuple((let.name, self.before[let.name]) for let in self.tasks.counts)
        made = replace(made, trips=made.trips + 1, until=made.until + 1, lets=(*old, *lets, *own))
        return replace(made, behind=names["tiles"], before=pairs)

    def _loop(self, body: tuple[Node, ...]) -> Loop:
        if not self.rounds:
            return Loop(self.trip, self.trips, body)
        return Loop(self.trip, self._rounds(const(self.trips)).value or 0, body, until=var(self.tasks.names["rounds"]))

    def _rounds(self, trips: Expr) -> Expr:
        return (maximum(trips, self.skew) + (self.rounds - 1)) // self.rounds * self.rounds

    def _counts(self) -> list[Let]:
        """How many trips this tile has, and the one before it, and through how many rounds they go."""
        (let,), names, most = self.tasks.counts, self.tasks.names, self._rounds(const(self.trips)).value or 0
        now = substitute(let.value, {BLOCK: var(names["tile"])}) * less(self.task, self.tiles)
        old = substitute(let.value, {BLOCK: var(self.before["tile"])}) * less(0, self.task)
        return [
            Let(let.name, now, let.most), Let(self.before[let.name], old, let.most),
            Let(names["rounds"], self._rounds(var(let.name)), most),
            Let(self.before["rounds"], self._rounds(var(self.before[let.name])), most),
        ]  # fmt: skip

    def named(self, program: Program) -> Program:
        """The program with the name of how many tiles a block has."""
        made = next(n for n in (*program.cube, *program.vector) if isinstance(n, Tasks))
        let = Let(self.tasks.names["tiles"], made.until - 1, made.trips - 1)
        return replace(program, lets=(*program.lets, let))


def _later(slot: Expr, trip: str, lag: int) -> Expr:
    """The slot of a ring so many trips ago, as a remainder of what is not negative."""
    slots = slot.args[1].value if slot.op == "mod" else None
    return substitute(slot, {trip: var(trip) + (-lag % slots if slots else -lag)})
