"""A table of measured programs: a program takes the analytic time, corrected as the measured programs most like it were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import exp, log
from pathlib import Path

from tile_eg.chips import Chip
from tile_eg.cost_models.analytic import Analytic
from tile_eg.cost_models.counted import counted, waves
from tile_eg.errors import TileError, why_unread
from tile_eg.ir.program import Program

NEAREST = 4


class Table:
    """Rows are (microseconds of each pipe, as the analytic model has them; measured over the largest of these).

    Nearness is the distance of the logarithms; the `NEAREST` rows count by its inverse.
    """

    name = "table"

    def __init__(self, chip: Chip) -> None:
        self.chip, self.analytic = chip, Analytic(chip)
        self.rows: list[tuple[dict[str, float], float]] = []

    def predict(self, programs: Sequence[Program]) -> list[float]:
        """Microseconds of each program. TileError while the table is empty."""
        if not self.rows:
            raise TileError(
                "the cost model 'table' holds no measurements", help="give it some with update, or load a saved table"
            )
        return [self._one(self._pipes(p)) for p in programs]

    def _one(self, pipes: dict[str, float]) -> float:
        near = sorted((_distance(pipes, row), ratio) for row, ratio in self.rows)[:NEAREST]
        weights = [1 / (d + 1e-6) for d, _ in near]
        return max(pipes.values()) * exp(sum(w * log(r) for w, (_, r) in zip(weights, near, strict=True)) / sum(weights))

    def _pipes(self, program: Program) -> dict[str, float]:
        busy: dict[str, float] = {}
        for work, times in counted(program, self.chip):
            for pipe, cycles in self.analytic.node_cost((work,)).items():
                busy[pipe] = busy.get(pipe, 0.0) + times * cycles
        return {p: self.chip.microseconds(waves(program, self.chip) * c) for p, c in busy.items() if c} or {"none": 1e-3}

    def update(self, measurements: Sequence[tuple[Program, float]]) -> None:
        """Adds (program, measured microseconds) pairs."""
        for program, measured in measurements:
            pipes = self._pipes(program)
            self.rows.append((pipes, measured / max(pipes.values())))

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"model": self.name, "chip": self.chip.name, "rows": self.rows}), "utf-8")

    def load(self, path: Path) -> None:
        """Reads what `save` wrote. TileError when the file is none of this model's."""
        try:
            rows = json.loads(path.read_text("utf-8"))["rows"]
            self.rows = [({str(p): float(us) for p, us in pipes.items()}, float(ratio)) for pipes, ratio in rows]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise TileError(f"cannot read the cost model file '{path}': {why_unread(error)}") from error


def _distance(a: dict[str, float], b: dict[str, float]) -> float:
    least = 1e-3
    return sum((log(max(a.get(p, 0.0), least)) - log(max(b.get(p, 0.0), least))) ** 2 for p in a.keys() | b.keys()) ** 0.5
