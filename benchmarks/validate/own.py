"""Rows that `tile-eg bench --csv` wrote on a machine with an NPU, beside what the engine predicts; a cost model made of them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from tile_eg.chips import load_chip
from tile_eg.cli.benched import benched
from tile_eg.cost_models.table import Table
from tile_eg.report.text import duration, table
from tile_eg.search.compiler import Planned


@dataclass(frozen=True)
class Own:
    """A measured row, and the kernel that its command compiles."""

    kernel: str
    shape: str
    chip: str
    measured: float
    planned: Planned

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return self.planned.cost.microseconds / self.measured - 1


def own_rows(path: Path) -> list[Own]:
    """The measured rows of a CSV, not the predicted ones. TileError for a row without a command of `tile-eg bench`."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_own(row) for row in csv.DictReader(file) if row["metric"] == "task_time"]


def _own(row: dict[str, str]) -> Own:
    planned = benched(row["source"]).compiled()
    return Own(row["kernel"], row["shape"], planned.chip.name, float(row["value"]), planned)


def shown(rows: Sequence[Own]) -> str:
    """Each row, and the mean error over all."""
    both = [[duration(us * 1e-6) for us in (r.measured, r.planned.cost.microseconds)] for r in rows]
    lines = [(r.kernel, r.shape, r.chip, *times, f"{r.error:+.1%}") for r, times in zip(rows, both, strict=True)]
    head = ("kernel", "shape", "chip", "measured", "predicted", "error")
    return f"{table(lines, head, right=(3, 4, 5))}\n\nmean error of {len(rows)} rows: {mean(abs(r.error) for r in rows):.1%}"


def learn(rows: Sequence[Own], out: Path) -> None:
    """Writes a `table` cost model of the rows, which `--cost-model` then takes by its file."""
    model = Table(load_chip(rows[0].chip))
    model.update([(r.planned.program, r.measured) for r in rows])
    model.save(out)
