"""A roofline: every instruction at the peak rate of its unit or path, with no start-up and nothing in its way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tile_eg.chips import Chip
from tile_eg.cost_models.counted import counted, waves
from tile_eg.errors import TileError
from tile_eg.ir.program import Program
from tile_eg.timeline.instruction import moved_bytes
from tile_eg.timeline.work import Work

PATHS = {"gm_to_ub": "gm_to_ub", "ub_to_gm": "ub_to_gm", "l1_to_l0a": "l1_to_l0a", "l1_to_l0b": "l1_to_l0b"}


class Roofline:
    """Guides the search and ranks programs; it has nothing to learn. As a time it is a lower bound, launch left out."""

    name = "roofline"

    def __init__(self, chip: Chip) -> None:
        self.chip = chip

    def node_cost(self, work: tuple[Work, ...]) -> dict[str, float]:
        """Busy cycles by core and pipe ("AIC.MTE2") of a node that consists of these instructions."""
        busy: dict[str, float] = {}
        for w in work:
            busy[w.pipe] = busy.get(w.pipe, 0.0) + self.cycles(w)
        return busy

    def cycles(self, w: Work) -> float:
        """Multiply-adds, bytes or elements by what the unit or path does in a cycle."""
        if w.op == "mmad":
            return w.rows * w.cols * w.depth / self.chip.cube.macs[w.src_dtype.name]
        path = {"gm_to_l1": "gm_to_l1", "fixpipe": "l0c_to_l1" if w.other == "L1" else "l0c_to_gm", **PATHS}.get(w.op)
        if path:
            return moved_bytes(w) / self.chip.path(path).rate(w.cores)
        return w.rows * w.cols / self.chip.vector.lanes(w.dtype)

    def predict(self, programs: Sequence[Program]) -> list[float]:
        """Microseconds of each program: its busiest pipe, in every wave of launch blocks."""
        return [self._one(p) for p in programs]

    def _one(self, program: Program) -> float:
        busy: dict[str, float] = {}
        for work, times in counted(program, self.chip):
            busy[work.pipe] = busy.get(work.pipe, 0.0) + times * self.cycles(work)
        return self.chip.microseconds(waves(program, self.chip) * max(busy.values(), default=0.0))

    def update(self, measurements: Sequence[tuple[Program, float]]) -> None:
        """Peak rates are not learnt."""

    def save(self, path: Path) -> None:
        path.write_text("", "utf-8")

    def load(self, path: Path) -> None:
        """There is nothing to read. TileError for a file that `save` did not write."""
        if not path.is_file() or path.stat().st_size:
            raise TileError(f"'{path}' is no file of the roofline's: it has nothing to learn, and saves an empty one")
