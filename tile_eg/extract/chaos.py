"""Extractors that do not want the best: a random choice by a seed, and the worst one. Sound rules give the same numbers."""

from __future__ import annotations

import random

from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model


class Random(Exact):
    """A legal choice by random weights; the same seed gives the same choice."""

    name = "random"
    as_found = True

    def __init__(self, seed: int = 0, refusals: int = 40) -> None:
        super().__init__(work=5.0, refusals=refusals)
        self.seed = seed

    def aim(self, model: Model) -> None:
        weight = random.Random(self.seed)
        model.cp.minimize(sum(weight.randint(-60, 100) * x for x in model.chosen))


class Worst(Exact):
    """The choice with the most busy cycles."""

    name = "worst"
    as_found = True

    def __init__(self, refusals: int = 40) -> None:
        super().__init__(work=5.0, refusals=refusals)

    def aim(self, model: Model) -> None:
        trips = [model.graph.total_trips(n.region) for n in model.graph.nodes]
        model.cp.maximize(sum((p.total * t + 50) * x for p, t, x in zip(model.prices, trips, model.chosen, strict=True)))
