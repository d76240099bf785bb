"""When everything happens: a Program's two streams on a chip's pipes, for one block, then for the whole launch.

One representative block runs through the pipes instruction by instruction; a loop that has found its rhythm is skipped ahead by
whole periods; where a core has many tiles that are not alike, some of them are run for all (`timeline.unlike`). Blocks beyond
the cores come in waves: those of the first one run in step, so that cores that read the same lines wait for each other; later
ones do not (and where waves are few, a last one of fewer blocks is run too: it shares the memory system with less). Where
blocks decide how often their loops run, one is timed that does the most, and waves behind the first take the mean of all: a
core that is done takes the next block. All together they cannot be faster than HBM brings what they touch, and
what a block does behind its last load comes after that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod

from tile_eg.chips import Chip
from tile_eg.ir.program import AIC, Program, Tasks
from tile_eg.ir.program.any_size import at_sizes
from tile_eg.ir.program.tasks import inlined
from tile_eg.ir.sharing import Itself, once
from tile_eg.ops.records import record
from tile_eg.timeline.accesses import Access, accesses, sharing
from tile_eg.timeline.block import Block, Streams, least_busy, run_block, surely_run
from tile_eg.timeline.cores import Span, StreamError
from tile_eg.timeline.guards import Loads, loads
from tile_eg.timeline.l2 import Room
from tile_eg.timeline.last_turn import InTurn
from tile_eg.timeline.meetings import joined, meeting, phases
from tile_eg.timeline.result import Timeline
from tile_eg.timeline.reuse import crossing, handed_over, hbm_seconds, traffic, with_reads
from tile_eg.timeline.turns import turns
from tile_eg.timeline.waves import in_waves
from tile_eg.timeline.works import OwnPrices, Pricer, blocks_at_once, own_prices, started

__all__ = ["Block", "Span", "StreamError", "Timeline", "run"]

HBM_BOUND = 0.9
FEW_WAVES = 20


def run(program: Program, chip: Chip, *, exact: bool = False, record: bool = True) -> Timeline:
    """The timeline of `program` on `chip`; `exact` runs every trip of every loop, `record` keeps its spans and handovers.

    A program of any size is timed at its usual sizes. Where all cores meet, the slowest one decides when they go on: what is
    between two meetings is timed by itself. StreamError where the streams cannot end.
    """
    program = _sized(program)
    if record:
        return joined([_run(p, chip, exact, record) for p in phases(inlined(program))], chip)
    timed = lambda p: once("phase", (p, chip, exact), lambda: _run(p, chip, exact, record))  # noqa: E731
    return once("timeline", (program, chip, exact), lambda: joined([timed(p) for p in _parts(program)], chip))


def _sized(program: Program) -> Program:
    """A program of any size at its usual sizes; any other is itself."""
    return program if program.sizes is None else once("at sizes", Itself(program), lambda: at_sizes(program))


def _parts(program: Program) -> Sequence[Program]:
    """The program from each meeting of all cores to the next one; of equal ones the same, so that they share what follows."""
    same = lambda p: once("part", p, lambda: p)  # noqa: E731
    return once("parts", program, lambda: [same(p) for p in phases(inlined(program))])


def _run(program: Program, chip: Chip, exact: bool, record: bool) -> Timeline:
    streams = Streams(program, exact=exact)
    try:
        return _timed(streams, chip, record)
    finally:
        streams.release()


def _timed(streams: Streams, chip: Chip, record: bool) -> Timeline:
    program = streams.program
    at_once = blocks_at_once(program, chip)
    met, work = _met(program, chip, at_once)
    block = _slowest_block(streams, met.prices(work, in_step=True), work, record)
    apart = lambda record=False: _slowest_block(streams, met.prices(work), work, record)  # noqa: E731
    if met.results > 1 and met.shared:
        first, block = block, apart(record)
        block = replace(block, cycles=block.cycles + max(0.0, first.cycles - block.cycles) / met.results)
    waves, rest = wave_count(program, chip), program.blocks % at_once
    total = block.cycles
    if waves > 1:
        later = apart() if met.shared else block
        last = _slowest_block(streams, met.pricer(rest), work) if rest and waves <= FEW_WAVES else later
        lengths = block.cycles, later.cycles * work.share, last.cycles * work.share
        total = in_waves(program.blocks, at_once, lengths, chip.shared.first_lost)
    hbm = hbm_seconds(chip, *met.crossing) * chip.clock_mhz * 1e6
    cycles = max(total, hbm + (block.behind_loads if met.crossing[0] else 0.0))
    launch = chip.launch_us(started(program, at_once), program.kernel_type.startswith("MIX"))
    return Timeline(
        program=program.name,
        chip=chip.name,
        kernel_type=program.kernel_type,
        blocks=program.blocks,
        waves=waves,
        cycles=cycles,
        microseconds=launch + chip.microseconds(cycles),
        launch_us=launch,
        clock_mhz=chip.clock_mhz,
        block_cycles=block.cycles,
        hbm_cycles=hbm,
        busy=block.busy,
        bytes={path: n * program.blocks * work.share for path, n in block.bytes.items()},
        bound="HBM" if hbm > HBM_BOUND * total else bound_of(block),
        spans=block.spans,
        handovers=block.handovers,
        extrapolated=block.extrapolated,
    )


@record
class _Met:
    """The chip as a program meets it: by `id` of a load which share of it comes from HBM and how many cores read it in step,
    the bytes that HBM reads and writes (`crossing`), how many results each block stores one after the other, and prices that
    have nothing to do with all that (`own`)."""

    program: Program
    chip: Chip
    found: Sequence[Access]
    missed: Mapping[int, float]
    crossing: tuple[float, float]
    in_step: Mapping[int, float]
    results: float
    own: OwnPrices

    @property
    def shared(self) -> bool:
        """Whether cores that began together read the same lines."""
        return max(self.in_step.values(), default=1) > 1

    def pricer(self, blocks: float, *, in_step: bool = False) -> Pricer:
        """What instructions cost where so many blocks share the memories."""
        alike = self.program, self.chip, blocks, self.missed, self.in_step if in_step else {}
        return Pricer(*alike, turns(self.chip, Pricer(*alike), self.found), own=self.own)

    def prices(self, work: Loads, *, in_step: bool = False) -> Pricer | InTurn:
        """The same where the launch's blocks have this work."""
        if work.turns is None:
            return self.pricer(work.mean, in_step=in_step)
        before, last = (self.pricer(n, in_step=in_step) for n in work.turns)
        return InTurn(before, last, self.found)


def _met(program: Program, chip: Chip, at_once: int) -> tuple[_Met, Loads]:
    """How a program meets the chip, told by the `id` of its instructions, and how its work lies on the blocks."""
    return once("met", (Itself(program), chip), lambda: (_new_met(program, chip, at_once), loads(program, at_once)))


def _new_met(program: Program, chip: Chip, at_once: int) -> _Met:
    found, handed = accesses(program), handed_over(program, chip.l2_reach)
    seen = traffic(program, found, Room.of(chip), at_once, handed)
    results = max((_stored(a) for a in found if _is_result(a, handed)), default=1.0)
    in_step = sharing(found, min(program.blocks, at_once))
    crossed = crossing(program, found, seen, handed)
    return _Met(program, with_reads(chip, *crossed), found, seen.missed, crossed, in_step, results, own_prices(program, chip))


def _is_result(a: Access, handed: Collection[str]) -> bool:
    """Whether an access stores a result: what cube cores hand over is one, copies that vector cores make beside them are not."""
    return not a.reads and (a.window.tensor not in handed or a.instr.core == AIC)


def _stored(a: Access) -> float:
    """How often a block that has a last tile stores a result."""
    return prod(v.trips if isinstance(v, Tasks) else a.means.get(v.var, v.trips) for v in a.loops)


def least(program: Program, chip: Chip, without: Collection[str] = ()) -> float:
    """Microseconds that `run` finds at the least for a program, whatever flags it has or will have: the launch, what the busiest
    pipe does in instructions that no guard may leave out, in each wave of blocks, and the meetings of all cores.

    Without some pipes it holds for programs that do not differ in what the others do.
    """
    return once("least", (program, chip, frozenset(without)), lambda: _least(program, chip, without))


def _least(program: Program, chip: Chip, without: Collection[str]) -> float:
    program = _sized(program)
    parts = _parts(program)
    cycles = sum(_least_cycles(p, chip, without) for p in parts) + meeting(chip) * (len(parts) - 1)
    launched = started(program, blocks_at_once(program, chip))
    return chip.launch_us(launched, program.kernel_type.startswith("MIX")) + chip.microseconds(cycles)


def _least_cycles(program: Program, chip: Chip, without: Collection[str]) -> float:
    at_once = blocks_at_once(program, chip)
    met, work = _met(program, chip, at_once)
    waves, rest = wave_count(program, chip), program.blocks % at_once
    sure = surely_run(program)

    def busiest(cores: float, *, in_step: bool = False) -> float:
        busy = least_busy(sure, met.pricer(cores, in_step=in_step))
        return max((n for (_, pipe), n in busy.items() if pipe not in without), default=0.0)

    cycles = busiest(work.mean, in_step=True)
    later = busiest(work.mean) if met.shared and (met.results > 1 or waves > 1) else cycles
    if met.results > 1:
        cycles = later + (cycles - later) / met.results
    if waves > 1:
        last = busiest(rest) if rest and waves <= FEW_WAVES else later
        lengths = cycles, min(cycles, later) * work.share, min(cycles, last) * work.share
        cycles = in_waves(program.blocks, at_once, lengths, chip.shared.first_lost)
    return cycles


def wave_count(program: Program, chip: Chip) -> int:
    """How many blocks a core takes one after the other."""
    return -(-program.blocks // blocks_at_once(program, chip))


def _slowest_block(streams: Streams, pricer: Pricer | InTurn, work: Loads, record: bool = False) -> Block:
    of = streams.program, pricer
    blocks = (run_block(*of, number, exact=streams.exact, record=record, streams=streams) for number in work.heavy)
    return max(blocks, key=lambda block: block.cycles)


# ---- the whole launch -------------------------------------------------------------------------------------------------------


def bound_of(block: Block) -> str:
    """The pipe that is busy for half of a block's time, or more; 'latency' where none is."""
    if not block.busy:
        return "latency"
    (core, pipe), most = max(block.busy.items(), key=lambda item: item[1])
    return f"{core}.{pipe}" if most >= 0.5 * block.cycles else "latency"
