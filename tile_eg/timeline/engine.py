"""When everything happens: a Program's two streams on a chip's pipes, for one block, then for the whole launch.

One representative block runs through the pipes instruction by instruction; a long loop is run at two lengths and the rest is
extrapolated. Blocks beyond the cores come in waves (where they are few, a last one of fewer blocks is run too: it shares the
memory system with less); all together they cannot be faster than HBM brings what they touch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from tile_eg.chips import Chip
from tile_eg.ir.index import BLOCK, SUB
from tile_eg.ir.machine import cores as cores_of
from tile_eg.ir.program import AIC, AIV, Program
from tile_eg.timeline.cores import Core, Handover, Record, Span, StreamError, run_cores
from tile_eg.timeline.expand import count, guards_on, loops, nests, steps
from tile_eg.timeline.reuse import mean_cores, misses, read_share, with_reads
from tile_eg.timeline.works import Pricer, blocks_at_once

__all__ = ["Block", "Span", "StreamError", "Timeline", "run"]

STEPS = 1000
INNER = (12, 12)
OUTER = (4, 2)
HBM_BOUND = 0.9
FEW_WAVES = 20


@dataclass(frozen=True)
class Block:
    """One block in cycles: its length, what each (core, pipe) was busy, bytes by path, bytes of HBM by (tensor, written)."""

    cycles: float
    busy: dict[tuple[str, str], float]
    bytes: dict[str, float]
    tensors: dict[tuple[str, bool], float]
    spans: tuple[Span, ...] = ()
    handovers: tuple[Handover, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """What the engine found. `cycles` are those between the first and the last instruction of the whole launch.

    `busy` is cycles by (core, pipe) in one block of `block_cycles`; `bytes` is by path ("GM->L1") in the whole launch. `bound` is
    what bounds the kernel: "HBM", a pipe ("AIC.MTE2"), or "latency" where no pipe is busy half of the time. `spans` are the
    instructions and `handovers` the flags of one block (not all of them when `extrapolated`).
    """

    program: str
    chip: str
    kernel_type: str
    blocks: int
    waves: int
    cycles: float
    microseconds: float
    launch_us: float
    clock_mhz: float
    block_cycles: float
    hbm_cycles: float
    busy: Mapping[tuple[str, str], float]
    bytes: Mapping[str, float]
    bound: str
    spans: tuple[Span, ...]
    extrapolated: bool
    handovers: tuple[Handover, ...] = ()

    @property
    def core_us(self) -> float:
        """Microseconds on the cores: without the launch."""
        return self.microseconds - self.launch_us

    def share(self, core: str, pipe: str) -> float:
        """How much of the block's time a pipe was busy, 0 to 1."""
        return self.busy.get((core, pipe), 0.0) / self.block_cycles if self.block_cycles else 0.0


def run(program: Program, chip: Chip, *, exact: bool = False) -> Timeline:
    """The timeline of `program` on `chip`; `exact` runs every trip of every loop. StreamError where the streams cannot end."""
    at_once = blocks_at_once(program, chip)
    missed = misses(program, chip.l2_bytes, at_once)
    chip = with_reads(chip, read_share(program, missed))
    side_by_side = mean_cores(program, at_once) if _guarded(program) else min(program.blocks, at_once)
    block, extrapolated = _slowest_block(program, Pricer(program, chip, side_by_side, missed), exact)
    waves = wave_count(program, chip)
    total, hbm = waves * block.cycles, _hbm_cycles(program, chip, block)
    rest = program.blocks % at_once
    if 1 < waves <= FEW_WAVES and rest:
        last, _ = _slowest_block(program, Pricer(program, chip, rest, missed), exact)
        total -= block.cycles - last.cycles
    launch = launch_microseconds(program, chip)
    return Timeline(
        program=program.name,
        chip=chip.name,
        kernel_type=program.kernel_type,
        blocks=program.blocks,
        waves=waves,
        cycles=max(total, hbm),
        microseconds=launch + chip.microseconds(max(total, hbm)),
        launch_us=launch,
        clock_mhz=chip.clock_mhz,
        block_cycles=block.cycles,
        hbm_cycles=hbm,
        busy=block.busy,
        bytes=_launch_bytes(program, block),
        bound="HBM" if hbm > HBM_BOUND * total else _bound(block),
        spans=block.spans,
        handovers=block.handovers,
        extrapolated=extrapolated,
    )


def wave_count(program: Program, chip: Chip) -> int:
    """How many blocks a core takes one after the other."""
    return -(-program.blocks // blocks_at_once(program, chip))


def _guarded(program: Program) -> bool:
    """Whether some guard depends on the block."""
    return program.blocks > 1 and any(guards_on(nodes, BLOCK) for nodes in (program.cube, program.vector))


def launch_microseconds(program: Program, chip: Chip) -> float:
    """Launch and scalar prologue; a kernel that takes both kinds of cores pays more."""
    mixed = program.kernel_type.startswith("MIX")
    return chip.launch.base_us + chip.launch.prologue_us + (chip.launch.mix_us if mixed else 0.0)


def _slowest_block(program: Program, pricer: Pricer, exact: bool) -> tuple[Block, bool]:
    """Block 0 has whole tiles; where guards depend on the block, the last one is run too and the slower one counts."""
    first = _block(program, pricer, 0, exact)
    if not _guarded(program):
        return first
    return max(first, _block(program, pricer, program.blocks - 1, exact), key=lambda b: b[0].cycles)


def _block(program: Program, pricer: Pricer, block: int, exact: bool) -> tuple[Block, bool]:
    skips = {} if exact else _skips(program)
    if skips:
        try:
            return _extrapolated(program, pricer, block, skips), True
        except StreamError:
            pass
    return _simulate(program, pricer, block, {}), False


def _simulate(program: Program, pricer: Pricer, block: int, skip: Mapping[str, int]) -> Block:
    """One block, with `skip` trips left out in the middle of the loops it names."""
    record = Record()
    env = {BLOCK: block, SUB: 0}
    sides = [(AIC, program.cube), (AIV, program.vector)]
    cores = [Core(name, steps(nodes, env, skip), pricer, pricer.chip, record) for name, nodes in sides if nodes]
    run_cores(cores)
    twice = 2 if program.halves or cores_of(program.kernel_type)[1] == 2 else 1
    weight = {AIC: 1, AIV: twice}
    moved: dict[str, float] = {}
    tensors: dict[tuple[str, bool], float] = {}
    for core in cores:
        for path, n in core.bytes.items():
            moved[path] = moved.get(path, 0) + n * weight[core.name]
        for key, missed in core.tensors.items():
            tensors[key] = tensors.get(key, 0) + missed * weight[core.name]
    busy = {(c.name, p.name): p.busy for c in cores for p in c.pipes.values() if p.busy}
    return Block(max((c.end for c in cores), default=0.0), busy, moved, tensors, tuple(record.spans), tuple(record.handovers))


# ---- long loops -------------------------------------------------------------------------------------------------------------


def _skips(program: Program) -> dict[str, tuple[int, int]]:
    """Trips to leave out and the period, by loop variable: of the three loops that save the most; none in a short program.

    A loop that holds other loops is cut shorter: what its trips hand to each other is settled by then.
    """
    total = count(program.cube, {}) + count(program.vector, {})
    if total <= STEPS:
        return {}
    trips = {**loops(program.vector), **loops(program.cube)}
    for var, n in loops(program.vector).items():
        trips[var] = min(trips[var], n)
    outer = nests(program.cube) | nests(program.vector)
    out = {}
    for var, n in trips.items():
        short, period = OUTER if var in outer else INNER
        if n >= short + 3 * period:
            out[var] = ((n - short) // period * period, period)
    best = sorted(out, key=lambda var: out[var][0] / trips[var], reverse=True)[:3]
    return {var: out[var] for var in best}


def _extrapolated(program: Program, pricer: Pricer, block: int, skips: Mapping[str, tuple[int, int]]) -> Block:
    """Multilinear: every chosen loop is run short and one period longer; the slope between carries to its whole length."""
    at: Block | None = None
    out: dict[str, float] = {}
    for corner in product((0, 1), repeat=len(skips)):
        skip = {var: n - period * longer for (var, (n, period)), longer in zip(skips.items(), corner, strict=True)}
        weight = 1.0
        for (n, period), longer in zip(skips.values(), corner, strict=True):
            weight *= n / period if longer else 1 - n / period
        one = _simulate(program, pricer, block, skip)
        at = one if at is None else at
        for key, value in _flat(one).items():
            out[key] = out.get(key, 0.0) + weight * value
    assert at is not None
    return replace(
        at,
        cycles=out["cycles"],
        busy={k: out[f"busy {k}"] for k in at.busy},
        bytes={k: out[f"bytes {k}"] for k in at.bytes},
        tensors={k: out[f"tensors {k}"] for k in at.tensors},
    )


def _flat(block: Block) -> dict[str, float]:
    out = {"cycles": block.cycles}
    for name, table in (("busy", block.busy), ("bytes", block.bytes), ("tensors", block.tensors)):
        out |= {f"{name} {key}": value for key, value in table.items()}
    return out


# ---- the whole launch -------------------------------------------------------------------------------------------------------


def _hbm_cycles(program: Program, chip: Chip, block: Block) -> float:
    """Cycles that HBM needs: for what loads did not find in L2, and for each written byte once."""
    sizes = {t.name: t.dtype.bytes * prod(t.shape) for t in program.tensors}
    moved = {key: n * program.blocks for key, n in block.tensors.items()}
    total = sum(min(n, sizes[tensor]) if written else n for (tensor, written), n in moved.items())
    rate = chip.shared.hbm_mixed if any(written for _, written in moved) else chip.shared.hbm_read
    return total / rate * chip.clock_mhz * 1e6


def _launch_bytes(program: Program, block: Block) -> dict[str, float]:
    return {path: n * program.blocks for path, n in block.bytes.items()}


def _bound(block: Block) -> str:
    if not block.busy:
        return "latency"
    (core, pipe), most = max(block.busy.items(), key=lambda item: item[1])
    return f"{core}.{pipe}" if most >= 0.5 * block.cycles else "latency"
