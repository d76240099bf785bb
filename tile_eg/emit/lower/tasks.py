"""A persistent kernel's loop over tiles, around the body of a block: what was the block's index is then the tile's.

Where the block decides how often loops run, each such number has a name, in a block or for a tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from tile_eg.extract import Schedule
from tile_eg.ir.index import (
    BLOCK,
    MOST_SIZE,
    SUB,
    Expr,
    Interval,
    both,
    bounds,
    const,
    less,
    minimum,
    simplified,
    substitute,
    var,
)
from tile_eg.ir.program import AIC, AIV, Instr, Let, Node, Program, Tasks
from tile_eg.ir.program.tasks import free_names, in_order, renamed, tasks
from tile_eg.ir.sizes import sizes_in
from tile_eg.ir.values import Values
from tile_eg.ops.records import record

NAMES = ("task", "turn", "band", "width", "step", "tile", "tiles", "rounds")


@record
class TaskLoop:
    """`blocks` launch blocks go through the tiles of `grid`, in bands of `window` tiles along a dimension (0: in its order).

    Where sizes known at run time decide the grid, there are no more blocks than tiles; all cores where these meet.
    """

    blocks: int | Expr
    grid: tuple[int | Expr, ...]
    window: int
    along: int
    names: dict[str, str]
    tiles: tuple[int, int] | None = None
    counts: tuple[Let, ...] = ()

    @staticmethod
    def of(schedule: Schedule) -> TaskLoop | None:
        """The loop that a schedule decided on; None where every tile has a launch block of its own."""
        if schedule.grid is None or not schedule.persistent:
            return None
        values = schedule.graph.values
        grid = _extents(values)
        names = free_names(NAMES, {*values.variables.values(), BLOCK, SUB})
        blocks, window, along = schedule.grid.payload
        if values.sizes and schedule.one_phase:
            least = minimum(blocks, values.sizes.blocks)
            blocks = least if least.value is None else least.value
        return TaskLoop(blocks, grid, window, along, names, schedule.tiles, counts(schedule))

    @property
    def turn(self) -> Expr:
        """Which of all turns a task is."""
        return var(self.names["task"]) * self.blocks + var(BLOCK) + (self.tiles[0] if self.tiles else 0)

    @property
    def tile(self) -> list[Let]:
        """What tells a task its tile."""
        return in_order(self.turn, self.grid, self.window, self.along, self.names)

    @property
    def lets(self) -> list[Let]:
        """What tells a task its tile, and how often the loops of that tile run."""
        tile = var(self.names["tile"])
        return [*self.tile, *(replace(let, value=substitute(let.value, {BLOCK: tile})) for let in self.counts)]

    def this(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """The nodes of a block as those of the tile of this task."""
        return renamed(nodes, {BLOCK: var(self.names["tile"])})

    def at(self, turn: Expr, ranges: Mapping[str, Interval]) -> Expr:
        """The tile that comes at a turn, an expression of variables in these ranges."""
        known = {self.names["turn"]: turn} if self.window else {}
        for let in in_order(turn, self.grid, self.window, self.along, self.names):
            known[let.name] = simplified(substitute(let.value, known), ranges)
        return known[self.names["tile"]]

    def first(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """As those of the first task's tile, before the loop."""
        return self._at(nodes, const(0))

    def next(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """Instructions as those of the tile of the next task, where there is one."""
        task = var(self.names["task"]) + 1
        there = less(substitute(self.turn, {self.names["task"]: task}), self.end)
        return tuple(replace(n, when=both(there, n.when)) for n in self._at(nodes, task) if isinstance(n, Instr))

    def _at(self, nodes: tuple[Node, ...], task: Expr) -> tuple[Node, ...]:
        known = {self.names["task"]: task}
        for let in self.tile:
            known[let.name] = substitute(let.value, known)
        return renamed(self.this(nodes), known)

    @property
    def end(self) -> int | Expr:
        """The turn behind the last one."""
        return prod(self.grid) if self.tiles is None else sum(self.tiles)

    def around(self, body: tuple[Node, ...]) -> Tasks:
        """The loop over the tiles of a block, around the body of one."""
        total = prod(self.grid)
        count = total if isinstance(total, Expr) else None
        made = tasks(body, self.blocks, self.lets, self.names, count)
        if self.tiles is None:
            return made
        assert isinstance(self.blocks, int)
        trips, ragged = divmod(self.tiles[1] + self.blocks - 1, self.blocks)[0], self.tiles[1] % self.blocks
        until = (self.tiles[1] + self.blocks - 1 - var(BLOCK)) // self.blocks if ragged else const(trips)
        return replace(made, trips=trips, until=until)


def _extents(values: Values) -> tuple[int | Expr, ...]:
    """The grid without the dimensions of one tile."""
    if values.sizes is None:
        return tuple(e for e in values.grid if e > 1) or (values.blocks,)
    return tuple(e if e.value is None else e.value for e in values.sizes.grid if e.value != 1) or (values.blocks,)


def counts(schedule: Schedule) -> tuple[Let, ...]:
    """How many trips the loops have whose number the block decides; equal numbers have one name."""
    values = schedule.graph.values
    loops = sorted({item.loop for _, around in schedule.walk() for item in around if item.loop in values.counts})
    taken = {*values.variables.values(), BLOCK, SUB}
    out: dict[Expr, Let] = {}
    for loop in loops:
        name = free_names(("trips",), taken | {let.name for let in out.values()})["trips"]
        most = values.trips[loop] if not sizes_in(values.counts[loop]) else _most_trips(values, loop)
        least = values.fewest[loop] if sizes_in(values.counts[loop]) else 0
        known = out.setdefault(values.counts[loop], Let(name, values.counts[loop], most, least))
        out[known.value] = replace(known, most=max(known.most, most), least=min(known.least, least))
    return tuple(out.values())


def _most_trips(values: Values, loop: int) -> int:
    """More trips than any sizes make of a loop."""
    return bounds(values.counts[loop], {BLOCK: (0, MOST_SIZE)})[1]


def reordered(program: Program, schedule: Schedule) -> Program:
    """The program of a schedule that differs in nothing but the order of its tiles, with this one's order."""
    loop = TaskLoop.of(schedule)
    assert loop is not None
    lets = tuple(loop.lets)

    def stream(core: str) -> tuple[Node, ...]:
        return tuple(replace(n, lets=lets) if isinstance(n, Tasks) else n for n in program.core(core))

    return replace(program, cube=stream(AIC), vector=stream(AIV))
