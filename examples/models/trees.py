"""Gradient-boosted trees (scikit-learn) on the context of a program."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))
from collections.abc import Sequence

from inputs import matrix, times
from ridge import Order

from tile_eg.cost_models.context import Context, context
from tile_eg.errors import TileError
from tile_eg.ir.program import Program


class Trees(Order):
    """Two hundred shallow trees; what is saved are the rows, from which they grow again alike."""

    name = "trees"

    def score(self, contexts: Sequence[Context]) -> list[float]:
        if self.weights is None:
            raise TileError("the trees have learnt nothing", help="give them measurements with update, or load a file")
        return times(contexts, self.grown.predict(matrix(contexts)))

    def predict(self, programs: Sequence[Program]) -> list[float]:
        return self.score([context(p, self.chip) for p in programs])

    def _fit(self) -> None:
        try:
            from sklearn.ensemble import GradientBoostingRegressor
        except ImportError:
            raise TileError("gradient-boosted trees need scikit-learn", help="pip install 'tile_eg[learn]'") from None
        self.grown = GradientBoostingRegressor(n_estimators=200, max_depth=3, learning_rate=0.05, subsample=0.8, random_state=0)
        self.grown.fit(np.array(self.x), np.array(self.y))
        self.weights = np.ones(1)
