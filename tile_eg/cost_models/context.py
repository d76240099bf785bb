"""What is known of a whole candidate before its flags are found: the load of each pipe, bytes by path, instructions, buffers.

It is what a context model sees, and what a learned model gets of a program: numbers under names that all kernels share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

from tile_eg.chips import Chip
from tile_eg.cost_models.analytic import Analytic
from tile_eg.cost_models.counted import issued, waves
from tile_eg.ir.machine import CORE_PIPES
from tile_eg.ir.program import Program
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.timeline.instruction import Work, moved_bytes
from tile_eg.timeline.works import blocks_at_once, started

Load = tuple[str, str]
PIPES = tuple(f"{core}.{pipe}" for core, pipes in CORE_PIPES.items() for pipe in pipes)
MOVES = ("gm_to_l1", "gm_to_ub", "ub_to_gm", "fixpipe", "l1_to_l0a", "l1_to_l0b", "ub_to_l1", "l1_to_ub")
LEVELS = (Level.L1, Level.L0A, Level.L0B, Level.L0C, Level.UB)
MARGIN = 0.02
"""The part of a candidate's busiest load by which a margin is tried, for a model whose answers come in steps."""


@record
class Context:
    """A candidate as its loads: of one launch block, in all its trips.

    `cycles` and `issued` are by loops around ("" outside of all, "j", "j/k") and pipe ("AIC.MTE2"); cycles are back to back, from
    the chip's tables. `bytes` are by instruction that moves them. `slots` and `filled` are, by memory, how many buffers its tiles
    have on the mean, and the part of it that they take. `launch` are the microseconds of the launch.
    """

    kernel: str
    chip: Chip
    blocks: int
    waves: int
    launch: float
    cycles: Mapping[Load, float]
    issued: Mapping[Load, float]
    bytes: Mapping[str, float]
    slots: Mapping[str, float]
    filled: Mapping[str, float]

    @cached_property
    def loads(self) -> dict[str, float]:
        """Cycles of each pipe in one launch block."""
        return _by_pipe(self.cycles)

    @cached_property
    def features(self) -> dict[str, float]:
        """Numbers by name: microseconds of a core in all its waves, counts, bytes of the launch, parts of memories.

        `busiest` is the load of the busiest pipe; `overlapped` that where only pipes of one loop overlap; `serial` where none do.
        """
        us = lambda cycles: self.chip.microseconds(self.waves * cycles)  # noqa: E731
        counts = _by_pipe(self.issued)
        out = {f"us.{p}": us(self.loads.get(p, 0.0)) for p in PIPES}
        out |= {f"issued.{p}": self.waves * counts.get(p, 0.0) for p in PIPES}
        out |= {f"bytes.{m}": self.blocks * self.bytes.get(m, 0.0) for m in MOVES}
        out |= {f"slots.{lv}": self.slots.get(str(lv), 0.0) for lv in LEVELS}
        out |= {f"filled.{lv}": self.filled.get(str(lv), 0.0) for lv in LEVELS}
        inside = {loop for loop, _ in self.cycles}
        most = (max(c for (where, _), c in self.cycles.items() if where == loop) for loop in sorted(inside))
        out |= {"busiest": us(max(self.loads.values(), default=0.0)), "overlapped": us(sum(most))}
        out |= {"serial": us(sum(self.loads.values())), "launch": self.launch, "blocks": self.blocks, "waves": self.waves}
        return out

    def more(self, pipe: str, cycles: float) -> Context:
        """The same candidate with so many cycles more on a pipe, in the loop that keeps it the busiest."""
        loops = [key for key in self.cycles if key[1] == pipe]
        key = max(loops, key=lambda k: (self.cycles[k], k)) if loops else ("", pipe)
        return replace(self, cycles={**self.cycles, key: self.cycles.get(key, 0.0) + cycles})


FEATURES = (
    *(f"us.{p}" for p in PIPES), *(f"issued.{p}" for p in PIPES), *(f"bytes.{m}" for m in MOVES),
    *(f"slots.{lv}" for lv in LEVELS), *(f"filled.{lv}" for lv in LEVELS),
    "busiest", "overlapped", "serial", "launch", "blocks", "waves",
)  # fmt: skip
"""The names of all features, in the order of their columns."""


def context(program: Program, chip: Chip) -> Context:
    """The context of a program, with its flags or before them."""
    model = Analytic(chip)
    cycles, counts, moved = defaultdict[Load, float](float), defaultdict[Load, float](float), defaultdict[str, float](float)
    priced: dict[Work, dict[str, float]] = {}
    for one in issued(program, chip):
        where = "/".join(one.loops)
        if one.work not in priced:
            priced[one.work] = model.node_cost((one.work,))
        for pipe, n in priced[one.work].items():
            cycles[where, pipe] += one.times * n
            counts[where, pipe] += one.times
        if one.work.op in MOVES:
            moved[one.work.op] += one.times * moved_bytes(one.work)
    launch = chip.launch_us(started(program, blocks_at_once(program, chip)), program.kernel_type.startswith("MIX"))
    return Context(
        program.name, chip, program.blocks, waves(program, chip), launch, cycles, counts, moved, *_buffers(program, chip)
    )


def _buffers(program: Program, chip: Chip) -> tuple[dict[str, float], dict[str, float]]:
    """By memory: the mean number of slots, and how far it is filled, at the most 1 where buffers share places."""
    slots, filled = dict[str, float](), dict[str, float]()
    for level in LEVELS:
        held = [b for b in program.buffers if b.level is level]
        if held:
            top = max((max(b.addresses) + b.slot_bytes for b in held if b.addresses), default=0)
            slots[str(level)] = sum(b.slots for b in held) / len(held)
            filled[str(level)] = min(1.0, top / chip.memories[level].bytes)
    return slots, filled


def _by_pipe(by_loop: Mapping[Load, float]) -> dict[str, float]:
    out: dict[str, float] = {}
    for (_, pipe), n in by_loop.items():
        out[pipe] = out.get(pipe, 0.0) + n
    return out


def feature_vector(found: Context, names: Iterable[str] = FEATURES) -> list[float]:
    """The features in the order of these names."""
    return [found.features[name] for name in names]
