"""A persistent kernel's loop over tiles, around the body of a block: what was the block's index is then the tile's."""

from __future__ import annotations

from dataclasses import dataclass

from tile_eg.extract import Schedule
from tile_eg.ir.index import BLOCK, SUB, var
from tile_eg.ir.program import Node, Tasks
from tile_eg.ir.tasks import free_names, in_order, renamed, tasks


@dataclass(frozen=True)
class TaskLoop:
    """`blocks` launch blocks go through the tiles of `grid`, in bands of `window` tiles along a dimension (0: in its order)."""

    blocks: int
    grid: tuple[int, ...]
    window: int
    along: int
    names: dict[str, str]

    @staticmethod
    def of(schedule: Schedule) -> TaskLoop | None:
        """The loop that a schedule decided on; None where every tile has a launch block of its own."""
        if schedule.grid is None or not schedule.persistent:
            return None
        values = schedule.graph.values
        grid = tuple(e for e in values.grid if e > 1) or (values.blocks,)
        names = free_names(("task", "turn", "band", "width", "tile"), {*values.variables.values(), BLOCK, SUB})
        blocks, window, along = schedule.grid.payload
        return TaskLoop(blocks, grid, window, along, names)

    def around(self, body: tuple[Node, ...]) -> Tasks:
        """The body of one tile as the loop over the tiles of a block."""
        turn = var(self.names["task"]) * self.blocks + var(BLOCK)
        lets = in_order(turn, self.grid, self.window, self.along, self.names)
        return tasks(renamed(body, {BLOCK: var(self.names["tile"])}), self.blocks, lets, self.names)
