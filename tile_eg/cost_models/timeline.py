"""The default rank model: the timing engine, with one factor that measurements can set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import exp, log
from pathlib import Path

from tile_eg.chips import Chip
from tile_eg.errors import TileError, why_unread
from tile_eg.ir.program import Program
from tile_eg.timeline.engine import run


class TimelineModel:
    """`scale` multiplies every prediction: the geometric mean of measured over predicted time, 1 until `update` is called."""

    name = "timeline"

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.scale = 1.0

    def predict(self, programs: Sequence[Program]) -> list[float]:
        """Microseconds of each program, launch included."""
        return [self.scale * run(p, self.chip, record=False).microseconds for p in programs]

    def update(self, measurements: Sequence[tuple[Program, float]]) -> None:
        """Fits `scale` to (program, measured microseconds) pairs; none leaves it as it is."""
        ratios = [log(measured / run(p, self.chip, record=False).microseconds) for p, measured in measurements]
        if ratios:
            self.scale = exp(sum(ratios) / len(ratios))

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"model": self.name, "chip": self.chip.name, "scale": self.scale}), "utf-8")

    def load(self, path: Path) -> None:
        """Reads what `save` wrote. TileError when the file is none of this model's."""
        try:
            data = json.loads(path.read_text("utf-8"))
            self.scale = float(data["scale"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TileError(f"cannot read the cost model file '{path}': {why_unread(error)}") from error
