"""When the launches of a run happen: every block as it ran, on the cores of a chip, wave after wave.

Blocks that ran the same instructions with the same sizes take the same time: each kind is timed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd

from tile_eg.chips import Chip
from tile_eg.chips.loader import ends
from tile_eg.ir.program import AIC, AIV
from tile_eg.ops.records import record
from tile_eg.timeline.block import Block, run_cores, summed
from tile_eg.timeline.cores import Core, Record
from tile_eg.timeline.engine import HBM_BOUND, bound_of
from tile_eg.timeline.replay.l2 import L2
from tile_eg.timeline.replay.prices import RanPrices
from tile_eg.timeline.replay.row import Row
from tile_eg.timeline.replay.steps import add_rows
from tile_eg.timeline.result import Timeline
from tile_eg.timeline.reuse import hbm_seconds
from tile_eg.timeline.waves import ended, spread

LAUNCH = "launch"
TYPES = ("AIC_ONLY", "AIV_ONLY", "MIX_AIC_1_1", "MIX_AIC_1_2")


@record
class RanLaunch:
    """One launch in time. `timeline` is that of its slowest block, number `block`; `start` is microseconds since the first launch
    began.

    `unknown` are instructions without an entry in the chip's tables: name -> what they were counted as, and their lines. `rows`
    says which row of the trace each instruction of the timeline's spans was, by id of the Instr. `used` is how many blocks ran
    side by side at most, `range_us` the time over the ranges of what is assumed of the chip (None where somebody changed it).
    """

    kernel: str
    line: int
    block: int
    start: float
    timeline: Timeline
    unknown: Mapping[str, tuple[str, Sequence[int]]]
    rows: Mapping[int, Row]
    used: int
    range_us: tuple[float, float] | None


@record
class _Part:
    """The rows of one launch."""

    kernel: str
    line: int
    type: str
    blocks: int
    rows: Sequence[Row]

    @property
    def cores(self) -> tuple[int, int]:
        """Cube and vector cores of a block."""
        return int(self.type != "AIV_ONLY"), {"AIC_ONLY": 0, "MIX_AIC_1_2": 2}.get(self.type, 1)


def timed_launches(
    rows: Sequence[Row], chip: Chip, *, kernel: str = "", kernel_type: str = "", auto_sync: bool = False
) -> list[RanLaunch]:
    """The launches of a trace in their order. `kernel` and `kernel_type` are those of a trace of one launch that has no mark.

    StreamError where a core's rows cannot run to their end.
    """
    l2, out, start = L2(rows, chip.l2_reach, chip.l2_written), [], 0.0
    for part in _parts(rows, kernel, kernel_type):
        timer = _Timer(part, chip, l2, auto_sync)
        out.append(timer.launch(start))
        start += out[-1].timeline.microseconds
    return out


def _parts(rows: Sequence[Row], kernel: str, kernel_type: str) -> list[_Part]:
    marks = [i for i, row in enumerate(rows) if row.path == LAUNCH]
    if not marks:
        return [_Part(kernel, 0, kernel_type or _type_of(rows), 1 + max(row.block for row in rows), rows)] if rows else []
    ends = [*marks[1:], len(rows)]
    return [
        _Part(rows[i].name, rows[i].line, TYPES[rows[i].sizes[0]], rows[i].sizes[1], rows[i + 1 : end])
        for i, end in zip(marks, ends, strict=True)
    ]


def _type_of(rows: Sequence[Row]) -> str:
    names = {row.core for row in rows}
    if AIC not in names:
        return "AIV_ONLY"
    return "AIC_ONLY" if names == {AIC} else "MIX_AIC_1_2" if "AIV1" in names else "MIX_AIC_1_1"


class _Timer:
    """Times the blocks of one launch."""

    def __init__(self, part: _Part, chip: Chip, l2: L2, auto_sync: bool) -> None:
        self.part, self.chip, self.auto_sync = part, chip, auto_sync
        cube, vector = part.cores
        self.at_once = min(
            part.blocks, chip.cube_cores // cube if cube else part.blocks, chip.vector_cores // vector if vector else part.blocks
        )
        self.traffic = l2.launch(part.rows, max(1, self.at_once))
        self.first, self.later = self._prices(chip), self._prices(chip, in_step=False)
        self.blocks: dict[int, list[Row]] = {}
        for row in part.rows:
            self.blocks.setdefault(row.block, []).append(row)

    def _prices(self, chip: Chip, *, in_step: bool = True) -> RanPrices:
        cube, vector = self.part.cores
        return RanPrices(chip, {AIC: cube, AIV: vector}, self.traffic, in_step=in_step)

    def launch(self, start: float) -> RanLaunch:
        """The launch, which begins `start` microseconds after the first one."""
        kinds = self._kinds()
        times = {number: self._run(number, self.first if number < self.at_once else self.later) for number in kinds}
        slowest = max(times, key=lambda number: times[number][0].cycles, default=0)
        record = Record()
        rows: dict[int, Row] = {}
        prices = self.first if slowest < self.at_once else self.later
        block, _ = self._run(slowest, prices, record, rows)
        length = {block: times[n][0].cycles + _waits(times, n) for n, like in kinds.items() for block in like}
        lengths = [length[block] for block in sorted(length)]
        alone = self._alone(kinds)
        ends_at = lambda chip: self._ended(lengths, alone, chip)  # noqa: E731
        total = ends_at(self.chip) + self._waits_for_hbm(times)
        timeline = self._timeline(block, total, lengths)
        found = self.first.unknown | self.later.unknown
        unknown = {name: (what, sorted(lines)) for name, (what, lines) in found.items()}
        ends = self._range(slowest, block, timeline, ends_at)
        return RanLaunch(self.part.kernel, self.part.line, slowest, start, timeline, unknown, rows, self.at_once, ends)

    def _alone(self, kinds: Mapping[int, list[int]]) -> list[float]:
        """How long each block of the first wave would take without the others; empty where there is one wave."""
        if self.part.blocks <= self.at_once:
            return []
        alone = {b: self._run(n, self.later)[0].cycles for n, like in kinds.items() if n < self.at_once for b in like}
        return [alone[b] for b in sorted(alone)]

    def _ended(self, lengths: Sequence[float], alone: Sequence[float], chip: Chip) -> float:
        """When the last block has ended: those of the first wave begin together, and do not all lose as much as the last one."""
        cores, lost = max(1, self.at_once), chip.shared.first_lost
        first = [spread(n, min(own, n), cores, lost)[i] for i, (n, own) in enumerate(zip(lengths, alone, strict=False))]
        return ended([0.0] * cores, [*first, *lengths[len(first) :]])

    def _kinds(self) -> dict[int, list[int]]:
        """The first block of each kind, and all that ran the same. Those of the first wave run in step: kinds of their own."""
        found: dict[tuple, list[int]] = {}
        line = self.chip.rows.line
        for number, rows in sorted(self.blocks.items()):
            key = tuple(
                (r.core, r.pipe, r.name, r.line, r.bytes, r.path, r.tensor, gcd(r.offset, line), tuple(r.sizes)) for r in rows
            )
            found.setdefault((key, number < self.at_once), []).append(number)
        return {like[0]: like for like in found.values()}

    def _run(
        self, number: int, prices: RanPrices, record: Record | None = None, made: dict[int, Row] | None = None
    ) -> tuple[Block, dict[str, list[float]]]:
        """One block, and when each of its cores came to the meetings of all blocks."""
        rows = self.blocks.get(number, [])
        cores = []
        for name in sorted({row.core for row in rows}):
            core = Core(name, prices.chip, {}, record)
            core.prices = prices
            mine = add_rows(core, [row for row in rows if row.core == name], prices, auto_sync=self.auto_sync)
            if made is not None:
                made |= mine
            cores.append(core)
        run_cores(cores)
        return summed(cores, {core.name: 1 for core in cores}, record), {core.name: core.meetings for core in cores}

    def _hbm(self) -> list[float]:
        """Cycles that HBM needs in each phase."""
        clock = self.chip.clock_mhz * 1e6
        return [hbm_seconds(self.chip, read, written) * clock for read, written in self.traffic.hbm]

    def _waits_for_hbm(self, times: Mapping[int, tuple[Block, dict[str, list[float]]]]) -> float:
        """Cycles by which all cores come late to their meetings because HBM brings less than they ask for."""
        need = self._hbm()
        if len(need) == 1 or self.part.blocks > self.at_once:
            return 0.0
        took = [0.0] * len(need)
        for block, meetings in times.values():
            for mine in meetings.values():
                stages = _stages([*mine, block.cycles])
                took = [max(a, b) for a, b in zip(took, stages, strict=False)] + took[len(stages) :]
        return sum(max(0.0, n - t) for n, t in zip(need, took, strict=True))

    def _timeline(self, block: Block, total: float, lengths: Sequence[float]) -> Timeline:
        chip, part, hbm = self.chip, self.part, sum(self._hbm())
        launch = chip.launch_us(self.at_once, part.type.startswith("MIX"))
        moved: dict[str, float] = {}
        for row in part.rows:
            if "->" in row.path:
                moved[row.path] = moved.get(row.path, 0) + row.bytes
        cycles = max(total, hbm + (block.behind_loads if any(read for read, _ in self.traffic.hbm) else 0.0))
        return Timeline(
            program=part.kernel, chip=chip.name, kernel_type=part.type, blocks=part.blocks,
            waves=-(-part.blocks // max(1, self.at_once)), cycles=cycles,
            microseconds=launch + chip.microseconds(cycles), launch_us=launch, clock_mhz=chip.clock_mhz,
            block_cycles=max(lengths, default=0.0), hbm_cycles=hbm, busy=block.busy, bytes=moved,
            bound="HBM" if hbm > HBM_BOUND * total else bound_of(block), spans=block.spans, extrapolated=False,
            handovers=block.handovers,
        )  # fmt: skip

    def _range(
        self, slowest: int, here: Block, timeline: Timeline, ends_at: Callable[[Chip], float]
    ) -> tuple[float, float] | None:
        """Microseconds with all that is assumed of the chip at both ends of its range: all move as the slowest block, `here`.

        `ends_at` says when the last block ends on a chip. None where somebody changed the chip.
        """
        both = ends(self.chip)
        if both is None:
            return None
        out = [timeline.microseconds]
        for chip in both:
            there, _ = self._run(slowest, self._prices(chip, in_step=slowest < self.at_once))
            launch = chip.launch_us(self.at_once, self.part.type.startswith("MIX"))
            more = timeline.waves * (there.cycles - here.cycles) + ends_at(chip) - ends_at(self.chip)
            out.append(launch + chip.microseconds(timeline.cycles + more))
        return min(out), max(out)


def _waits(times: Mapping[int, tuple[Block, dict[str, list[float]]]], number: int) -> float:
    """Cycles that a block's cores stand still in meetings, until the last block has come."""
    out = 0.0
    for core, mine in times[number][1].items():
        others = [meetings[core] for _, meetings in times.values() if core in meetings and len(meetings[core]) == len(mine)]
        out = max(out, sum(max(stage) for stage in zip(*map(_stages, others), strict=True)) - sum(_stages(mine)))
    return out


def _stages(meetings: Sequence[float]) -> list[float]:
    """Cycles from each meeting to the next one."""
    return [b - a for a, b in zip((0.0, *meetings), meetings, strict=False)]
