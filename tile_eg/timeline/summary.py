"""A timeline as small tables of plain data, for whoever prints it."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.chips import Chip
from tile_eg.chips.loader import ends
from tile_eg.ir.program import CrossWait, Program, SyncAll, walk
from tile_eg.ops.records import record
from tile_eg.timeline.engine import run
from tile_eg.timeline.result import Timeline


@record
class PipeRow:
    """How long a pipe worked in the whole launch, on one core, and what share of the time on the core that is (0 to 1)."""

    core: str
    pipe: str
    busy_us: float
    share: float


@record
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


def intervals(program: Program, chip: Chip) -> tuple[tuple[float, float], tuple[float, float]]:
    """Microseconds with all that the chip's tables assume at the quick and at the slow end of its range (`chips.marks`).

    The second interval is that of the time on the cores alone, behind the launch as it is predicted: what two schedules of one
    kernel may differ by.
    """
    here = run(program, chip, record=False)
    both_ends = ends(chip)
    if both_ends is None:
        both = _between(here.microseconds, *_with_latency(program, chip))
        return both, both
    there = [run(program, end, record=False) for end in both_ends]
    whole = _between(here.microseconds, *(t.microseconds for t in there))
    return whole, _between(here.microseconds, *(here.launch_us + t.microseconds - t.launch_us for t in there))


def interval(program: Program, chip: Chip) -> tuple[float, float]:
    """The first of `intervals`."""
    return intervals(program, chip)[0]


def _with_latency(program: Program, chip: Chip) -> list[float]:
    """The same on a chip that somebody changed: over the range of the latency between cores alone."""
    latencies = chip.sync.cross_latency_low, chip.sync.cross_latency_high
    return [run(program, replace(chip, sync=replace(chip.sync, cross_latency=n)), record=False).microseconds for n in latencies]


def _between(*times: float) -> tuple[float, float]:
    return min(times), max(times)


def handover_range(program: Program, chip: Chip) -> tuple[float, float] | None:
    """Microseconds with the shortest and the longest latency between cores that is taken to be possible (it is not published).

    None for a program in which no core waits for another.
    """
    if not any(isinstance(n, CrossWait | SyncAll) for n in walk((*program.cube, *program.vector))):
        return None
    low, high = _with_latency(program, chip)
    return low, high
