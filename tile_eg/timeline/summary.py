"""A timeline as small tables of plain data, for whoever prints it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tile_eg.chips import Chip
from tile_eg.ir.program import CrossWait, Program, SyncAll, walk
from tile_eg.timeline.engine import run
from tile_eg.timeline.result import Timeline


@dataclass(frozen=True)
class PipeRow:
    """How long a pipe worked in the whole launch, on one core, and what share of the time on the core that is (0 to 1)."""

    core: str
    pipe: str
    busy_us: float
    share: float


@dataclass(frozen=True)
class LevelRow:
    """Bytes that all cores together read from and wrote to one memory level."""

    level: str
    read: float
    written: float


def pipe_table(timeline: Timeline) -> list[PipeRow]:
    """The pipes that did something, busiest first."""
    scale = timeline.waves / timeline.clock_mhz
    rows = [
        PipeRow(core, pipe, busy * scale, timeline.share(core, pipe) * timeline.waves * timeline.block_cycles / timeline.cycles)
        for (core, pipe), busy in timeline.busy.items()
    ]
    return sorted(rows, key=lambda row: -row.busy_us)


def level_table(timeline: Timeline) -> list[LevelRow]:
    """Bytes by memory level, the levels that moves touch only."""
    read: dict[str, float] = {}
    written: dict[str, float] = {}
    for path, n in timeline.bytes.items():
        source, target = path.split("->")
        read[source] = read.get(source, 0) + n
        written[target] = written.get(target, 0) + n
    order = ("GM", "WS", "L1", "L0A", "L0B", "L0C", "UB")
    return [LevelRow(v, read.get(v, 0), written.get(v, 0)) for v in order if v in read or v in written]


def handover_range(program: Program, chip: Chip) -> tuple[float, float] | None:
    """Microseconds with the shortest and the longest latency between cores that is taken to be possible (it is not published).

    None for a program in which no core waits for another.
    """
    if not any(isinstance(n, CrossWait | SyncAll) for n in walk((*program.cube, *program.vector))):
        return None
    low, high = (
        run(program, replace(chip, sync=replace(chip.sync, cross_latency=latency)), record=False).microseconds
        for latency in (chip.sync.cross_latency_low, chip.sync.cross_latency_high)
    )
    return low, high
