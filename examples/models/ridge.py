"""Ridge regression on the context of a program, in NumPy: it orders candidates, and can decide."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))
from inputs import matrix, target, times

from tile_eg.chips import Chip
from tile_eg.cost_models.context import Context, context
from tile_eg.errors import TileError
from tile_eg.ir.program import Program

PENALTY = 1.0


class Order:
    """Orders candidates in the search (`score`); the timeline decides."""

    name = "ridge order"

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.x: list[list[float]] = []
        self.y: list[float] = []
        self.weights: np.ndarray | None = None

    def score(self, contexts: Sequence[Context]) -> list[float]:
        if self.weights is None:
            raise TileError("the ridge regression has learnt nothing", help="give it measurements with update, or load a file")
        x = (matrix(contexts) - self.mean) / self.spread
        return times(contexts, np.column_stack([x, np.ones(len(x))]) @ self.weights)

    def update(self, measurements: Sequence[tuple[Program, float]]) -> None:
        contexts = [context(p, self.chip) for p, _ in measurements]
        self.observe(contexts, [us for _, us in measurements])

    def observe(self, contexts: Sequence[Context], microseconds: Sequence[float]) -> None:
        """Learns from candidates that were timed: in a search it hears of each as soon as it is planned."""
        self.x += matrix(contexts).tolist()
        self.y += [target(c, us) for c, us in zip(contexts, microseconds, strict=True)]
        self._fit()

    def _fit(self) -> None:
        raw = np.array(self.x)
        self.mean, self.spread = raw.mean(0), np.maximum(raw.std(0), 1e-3)
        x = np.column_stack([(raw - self.mean) / self.spread, np.ones(len(raw))])
        penalty = PENALTY * np.diag([*([1.0] * raw.shape[1]), 0.0])
        self.weights = np.linalg.solve(x.T @ x + penalty, x.T @ np.array(self.y))

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"x": self.x, "y": self.y}), "utf-8")

    def load(self, path: Path) -> None:
        try:
            held = json.loads(path.read_text("utf-8"))
            self.x, self.y = held["x"], held["y"]
            self._fit()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TileError(f"cannot read the cost model file '{path}': {error}") from error


class Ridge(Order):
    """Orders candidates, and decides (`predict`)."""

    name = "ridge"

    def predict(self, programs: Sequence[Program]) -> list[float]:
        return self.score([context(p, self.chip) for p in programs])
