"""One candidate: is it right, and how long does it take? Both run wherever a worker is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING

from tile_eg.chips import load_chip
from tile_eg.errors import TileError
from tile_eg.inputs import USUAL, Drawn, drawn_sets
from tile_eg.ir.arrays import begun
from tile_eg.ir.kernel import Kernel, added_to
from tile_eg.ir.passed import examples
from tile_eg.ir.program.parser import parse_program
from tile_eg.ops.records import record
from tile_eg.search.planned import Run
from tile_eg.search.restored import Restored
from tile_eg.simulator.sample import blocks_with, sampled
from tile_eg.tuning.space import Compiled

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.ir.reference_bounds import Expected

BLOCKS = 8
"""Tiles of the grid whose numbers are compared, where there are more: those at its corners, and others."""
SECONDS = 600.0
"""Seconds of processor time that a check may take."""


@record
class Trial:
    """A candidate, and how it is looked at: how many tiles of its grid are compared (0: all), the seed of its inputs, and how
    often it is launched on an NPU."""

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
    def tiles(self) -> tuple[int, ...] | None:
        """The tiles of the grid whose numbers are compared; None where all are, as they are few, or add up."""
        grid = [extent for _, extent in self.kernel.grid]
        if not self.blocks or self.blocks >= prod(grid) or added_to(self.kernel):
            return None
        return sampled(self.blocks, grid)

    @property
    def sampled(self) -> tuple[int, ...]:
        """The blocks that run; none where all do."""
        total = prod(extent for _, extent in self.kernel.grid)
        return () if self.tiles is None else blocks_with(self.tiles, self.planned.program, total)

    @property
    def drawn(self) -> tuple[Drawn, ...]:
        """Its inputs, with what the kernel means on them."""
        return _drawn(self.kernel, self.seed, self.tiles)


@record
class Checked:
    """What stands against a candidate's numbers (empty: they are right), and of how many of the grid's tiles they are."""

    wrong: str
    compared: int
    tiles: int


@record
class Timed:
    """The median and the least of an NPU's times in microseconds; or what is wrong with what it computed."""

    median: float
    least: float
    wrong: str = ""


def checked(trial: Trial) -> Checked:
    """Runs a candidate's text in the simulator on each usual set of inputs, and compares with what the kernel means.

    TileError where that needs more time or memory than it may take.
    """
    blocks, tiles = trial.sampled, trial.tiles
    wrong = (w for drawn in trial.drawn if (w := _wrong(trial, drawn, blocks)))
    total = prod(extent for _, extent in trial.kernel.grid)
    return Checked(next(wrong, ""), total if tiles is None else len(tiles), total)


def _wrong(trial: Trial, drawn: Drawn, blocks: tuple[int, ...]) -> str:
    run = trial.planned.run(drawn.arrays, strict=False, seconds=SECONDS, blocks=blocks).as_meant(trial.kernel, drawn.arrays)
    if run.findings:
        return f"the simulator finds: {run.findings[0]}"
    if blocks and _not_there(run, drawn):  # others have computed what is to be compared
        return _wrong(trial, drawn, ())
    return _unlike(run, drawn)


def _not_there(run: Run, drawn: Drawn) -> bool:
    """Whether a number that is to be compared was not computed."""
    import numpy as np

    meant = drawn.meant or {}
    return any((mask & np.isfinite(meant[name].allowed)).any() for name, mask in run.not_computed.items())


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
def _drawn(kernel: Kernel, seed: int, tiles: tuple[int, ...] | None) -> tuple[Drawn, ...]:
    """The inputs of a kernel with what it means on them, once for all candidates at its sizes; numbers of a call are examples."""
    import numpy as np

    passed = {n: np.asarray(x, np.float32) for n, x in examples(kernel).items()}
    return tuple(drawn_sets(kernel, USUAL, seed, passed, tiles))


def timed(trial: Trial) -> Timed:
    """Measures a candidate on this machine's NPU, as `tile-eg bench` does, once what it computes there is seen to be right."""
    from tile_eg.npu.bench import OnNpu

    drawn = trial.drawn[0]
    assert drawn.meant is not None
    on_npu = OnNpu(trial.planned, {t.name: begun(t, drawn.arrays) for t in trial.planned.program.tensors})
    on_npu.launch()
    if wrong := differs(on_npu.outputs(), drawn.meant, {}, {}, "on the NPU"):
        return Timed(0.0, 0.0, wrong)
    times = on_npu.measure(trial.launches, trial.warmup)
    return Timed(times.median, times.least)


def check_numbers(blocks: int, launches: int, warmup: int) -> None:
    """TileError for a number of blocks or launches that cannot be."""
    for name, number, least in (("tiles to compare", blocks, 0), ("launches", launches, 3), ("launches to warm up", warmup, 0)):
        if number < least:
            raise TileError(f"{number} {name}: at least {least}")
