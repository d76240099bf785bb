"""When everything happens: a Program's two streams on a chip's pipes, for one block, then for the whole launch.

One representative block runs through the pipes instruction by instruction; a long loop is run at two lengths and the rest is
extrapolated. Blocks beyond the cores come in waves; all together they cannot be faster than HBM brings what they touch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

from tile_eg.chips import Chip
from tile_eg.ir.index import BLOCK, SUB
from tile_eg.ir.machine import cores as cores_of
from tile_eg.ir.program import AIC, AIV, Program
from tile_eg.timeline.cores import Core, Span, StreamError, run_cores
from tile_eg.timeline.expand import count, guards_on, loops, steps
from tile_eg.timeline.works import Pricer, launched

__all__ = ["Block", "Span", "StreamError", "Timeline", "run"]

STEPS = 4000
PERIOD = 12
SHORT = 24


@dataclass(frozen=True)
class Block:
    """One block in cycles: its length, what each (core, pipe) was busy, bytes by path, bytes by (tensor, written)."""

    cycles: float
    busy: dict[tuple[str, str], float]
    bytes: dict[str, float]
    tensors: dict[tuple[str, bool], float]
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """What the engine found. `cycles` are those between the first and the last instruction of the whole launch.

    `busy` is cycles by (core, pipe) in one block of `block_cycles`; `bytes` is by path ("GM->L1") in the whole launch. `bound` is
    what bounds the kernel: "HBM", a pipe ("AIC.MTE2"), or "latency" where no pipe is busy half of the time. `spans` are the
    instructions of one block (not all of them when `extrapolated`).
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

    @property
    def core_us(self) -> float:
        """Microseconds on the cores: without the launch."""
        return self.microseconds - self.launch_us

    def share(self, core: str, pipe: str) -> float:
        """How much of the block's time a pipe was busy, 0 to 1."""
        return self.busy.get((core, pipe), 0.0) / self.block_cycles if self.block_cycles else 0.0


def run(program: Program, chip: Chip, *, exact: bool = False) -> Timeline:
    """The timeline of `program` on `chip`; `exact` runs every trip of every loop. StreamError where the streams cannot end."""
    pricer = Pricer(program, chip)
    block, extrapolated = _slowest_block(program, pricer, exact)
    waves = wave_count(program, chip)
    hbm = _hbm_cycles(program, chip, block)
    total = max(waves * block.cycles, hbm)
    launch = launch_microseconds(program, chip)
    return Timeline(
        program=program.name,
        chip=chip.name,
        kernel_type=program.kernel_type,
        blocks=program.blocks,
        waves=waves,
        cycles=total,
        microseconds=launch + chip.microseconds(total),
        launch_us=launch,
        clock_mhz=chip.clock_mhz,
        block_cycles=block.cycles,
        hbm_cycles=hbm,
        busy=block.busy,
        bytes=_launch_bytes(program, block),
        bound=_bound(block, waves, hbm),
        spans=block.spans,
        extrapolated=extrapolated,
    )


def wave_count(program: Program, chip: Chip) -> int:
    """How many blocks a core takes one after the other."""
    aic, aiv = launched(program)
    return max(-(-aic // chip.cube_cores), -(-aiv // chip.vector_cores), 1)


def launch_microseconds(program: Program, chip: Chip) -> float:
    """Launch and scalar prologue; a kernel that takes both kinds of cores pays more."""
    mixed = program.kernel_type.startswith("MIX")
    return chip.launch.base_us + chip.launch.prologue_us + (chip.launch.mix_us if mixed else 0.0)


def _slowest_block(program: Program, pricer: Pricer, exact: bool) -> tuple[Block, bool]:
    """Block 0 has whole tiles; where guards depend on the block, the last one is run too and the slower one counts."""
    first = _block(program, pricer, 0, exact)
    if program.blocks == 1 or not any(guards_on(nodes, BLOCK) for nodes in (program.cube, program.vector)):
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
    spans: list[Span] = []
    env = {BLOCK: block, SUB: 0}
    sides = [(AIC, program.cube), (AIV, program.vector)]
    cores = [Core(name, steps(nodes, env, skip), pricer, pricer.chip, spans) for name, nodes in sides if nodes]
    run_cores(cores)
    twice = 2 if program.halves or cores_of(program.kernel_type)[1] == 2 else 1
    weight = {AIC: 1, AIV: twice}
    moved: dict[str, float] = {}
    tensors: dict[tuple[str, bool], float] = {}
    for core in cores:
        for path, n in core.bytes.items():
            moved[path] = moved.get(path, 0) + n * weight[core.name]
        for key, n in core.tensors.items():
            tensors[key] = tensors.get(key, 0) + n * weight[core.name]
    busy = {(c.name, p.name): p.busy for c in cores for p in c.pipes.values() if p.busy}
    return Block(max((c.end for c in cores), default=0.0), busy, moved, tensors, tuple(spans))


# ---- long loops -------------------------------------------------------------------------------------------------------------


def _skips(program: Program) -> dict[str, int]:
    """Trips to leave out, by loop variable: whole periods, of the two loops that save the most; none in a short program."""
    total = count(program.cube, {}) + count(program.vector, {})
    if total <= STEPS:
        return {}
    trips = {**loops(program.vector), **loops(program.cube)}
    for var, n in loops(program.vector).items():
        trips[var] = min(trips[var], n)
    long = {var: (n - SHORT) // PERIOD * PERIOD for var, n in trips.items() if n >= SHORT + 3 * PERIOD}
    best = sorted(long, key=lambda var: long[var] / trips[var], reverse=True)[:2]
    return {var: long[var] for var in best}


def _extrapolated(program: Program, pricer: Pricer, block: int, skips: Mapping[str, int]) -> Block:
    """Multilinear: every chosen loop is run short and one period longer; the slope between carries to its whole length."""
    at: Block | None = None
    out: dict[str, float] = {}
    for corner in product((0, 1), repeat=len(skips)):
        skip = {var: n - PERIOD * longer for (var, n), longer in zip(skips.items(), corner, strict=True)}
        weight = 1.0
        for (_, n), longer in zip(skips.items(), corner, strict=True):
            periods = n / PERIOD
            weight *= periods if longer else 1 - periods
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
    """Cycles that HBM needs for the tensors: each byte once, as L2 holds what is read again (the workspace included)."""
    sizes = {t.name: t.dtype.bytes * _product(t.shape) for t in program.tensors}
    touched = {key: min(n * program.blocks, sizes[key[0]]) for key, n in block.tensors.items()}
    writes = any(written for _, written in touched)
    rate = chip.shared.hbm_mixed if writes else chip.shared.hbm_read
    return sum(touched.values()) / rate * chip.clock_mhz * 1e6


def _product(shape: tuple[int, ...]) -> int:
    out = 1
    for n in shape:
        out *= n
    return out


def _launch_bytes(program: Program, block: Block) -> dict[str, float]:
    return {path: n * program.blocks for path, n in block.bytes.items()}


def _bound(block: Block, waves: int, hbm: float) -> str:
    if hbm > waves * block.cycles:
        return "HBM"
    if not block.busy:
        return "latency"
    (core, pipe), most = max(block.busy.items(), key=lambda item: item[1])
    return f"{core}.{pipe}" if most >= 0.5 * block.cycles else "latency"
