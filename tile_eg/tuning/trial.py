"""One candidate: is it right, and how long does it take? Both run wherever a worker is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from tile_eg.chips import load_chip
from tile_eg.errors import TileError
from tile_eg.inputs import USUAL, Drawn, drawn_sets
from tile_eg.ir.arrays import begun
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program.parser import parse_program
from tile_eg.search.planned import Run
from tile_eg.search.restored import Restored
from tile_eg.search.sample import can_be_sampled, sampled_blocks
from tile_eg.tuning.space import Compiled

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.ir.reference_bounds import Expected

BLOCKS = 8
"""Blocks of a candidate that the check runs, where it may run some without the others."""
SECONDS = 600.0
"""Seconds of processor time that a check may take."""


@dataclass(frozen=True)
class Trial:
    """A candidate, and how it is looked at: how many of its blocks are checked (0: all), the seed of its inputs, and how often
    it is launched on an NPU."""

    candidate: Compiled
    blocks: int = BLOCKS
    seed: int = 0
    launches: int = 100
    warmup: int = 10

    @cached_property
    def planned(self) -> Restored:
        program = parse_program(self.candidate.program)
        return Restored(program, load_chip(program.chip), self.candidate.kernel, self.candidate.source)

    @property
    def kernel(self) -> Kernel:
        return self.candidate.kernel

    @property
    def sampled(self) -> tuple[int, ...]:
        """The blocks that are checked; none where all are."""
        planned = self.planned
        if not self.blocks or not can_be_sampled(planned.program):
            return ()
        return sampled_blocks(self.blocks, planned.program, [extent for _, extent in self.kernel.grid])


@dataclass(frozen=True)
class Checked:
    """What stands against a candidate's numbers (empty: they are right), and how many of its blocks ran of how many."""

    wrong: str
    ran: int
    blocks: int


@dataclass(frozen=True)
class Timed:
    """The median and the least of an NPU's times in microseconds; or what is wrong with what it computed."""

    median: float
    least: float
    wrong: str = ""


def checked(trial: Trial) -> Checked:
    """Runs a candidate's text in the simulator on each usual set of inputs, and compares with what the kernel means.

    TileError where that needs more time or memory than it may take.
    """
    blocks = trial.sampled
    wrong = (w for drawn in _drawn(trial.kernel, trial.seed) if (w := _wrong(trial, drawn, blocks)))
    total = trial.planned.program.blocks
    return Checked(next(wrong, ""), len(blocks) or total, total)


def _wrong(trial: Trial, drawn: Drawn, blocks: tuple[int, ...]) -> str:
    run = trial.planned.run(drawn.arrays, strict=False, seconds=SECONDS, blocks=blocks).as_meant(trial.kernel, drawn.arrays)
    if run.findings:
        return f"the simulator finds: {run.findings[0]}"
    return _unlike(run, drawn)


def _unlike(run: Run, drawn: Drawn) -> str:
    assert drawn.meant is not None
    return differs(run.outputs, drawn.meant, run.unwritten, run.not_computed, f"on inputs '{drawn.name}'")


def differs(
    got: Mapping[str, np.ndarray], meant: Mapping[str, Expected], unwritten: Mapping[str, np.ndarray],
    not_computed: Mapping[str, np.ndarray], where: str,
) -> str:  # fmt: skip
    """The first output whose numbers are not those that are meant; empty where all are."""
    from tile_eg.report.compare import compare

    bad = (c for c in compare(got, meant, unwritten, not_computed) if not c.good)
    return next((f"{where}: {c.words}" for c in bad), "")


@lru_cache(maxsize=1)
def _drawn(kernel: Kernel, seed: int) -> tuple[Drawn, ...]:
    """The inputs of a kernel with what it means on them, once for all candidates at its sizes."""
    return tuple(drawn_sets(kernel, USUAL, seed))


def timed(trial: Trial) -> Timed:
    """Measures a candidate on this machine's NPU, as `tile-eg bench` does, once what it computes there is seen to be right."""
    from tile_eg.npu.bench import OnNpu

    drawn = _drawn(trial.kernel, trial.seed)[0]
    assert drawn.meant is not None
    on_npu = OnNpu(trial.planned, {t.name: begun(t, drawn.arrays) for t in trial.planned.program.tensors})
    on_npu.launch()
    if wrong := differs(on_npu.outputs(), drawn.meant, {}, {}, "on the NPU"):
        return Timed(0.0, 0.0, wrong)
    times = on_npu.measure(trial.launches, trial.warmup)
    return Timed(times.median, times.least)


def check_numbers(blocks: int, launches: int, warmup: int) -> None:
    """TileError for a number of blocks or launches that cannot be."""
    for name, number, least in (("blocks to check", blocks, 0), ("launches", launches, 3), ("launches to warm up", warmup, 0)):
        if number < least:
            raise TileError(f"{number} {name}: at least {least}")
