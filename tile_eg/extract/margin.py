"""Prices at the margin: a node costs what its load would add to the best candidate, as a context model sees it."""

from __future__ import annotations

from collections.abc import Mapping

from tile_eg.chips import Chip
from tile_eg.cost_models.analytic import Analytic
from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model
from tile_eg.timeline.instruction import Work


class MarginPrices:
    """A search model: the tables' cycles times what a cycle on that pipe adds to the candidate."""

    name = "margin"

    def __init__(self, chip: Chip, rates: Mapping[str, float]) -> None:
        self.analytic, self.rates = Analytic(chip), rates

    def node_cost(self, work: tuple[Work, ...]) -> dict[str, float]:
        """Cycles by core and pipe, a pipe's scaled by its rate."""
        return {pipe: cycles * self.rates.get(pipe, 1.0) for pipe, cycles in self.analytic.node_cost(work).items()}


class AtTheMargin(Exact):
    """The choices whose prices add up to the least: around one candidate every load has a price, also on idle pipes."""

    name = "margin"

    def aim(self, model: Model) -> None:
        trips = (model.graph.total_trips(n.region) for n in model.graph.nodes)
        model.cp.minimize(sum((p.total * t + 1) * x for p, t, x in zip(model.prices, trips, model.chosen, strict=True)))
