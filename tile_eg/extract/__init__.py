"""Chooses among the schedules of a graph: exactly where a solver finishes in time, by a beam where none does."""

from __future__ import annotations

from tile_eg.chips import Chip
from tile_eg.cost_models import search_model
from tile_eg.egraph import Graph
from tile_eg.extract.base import Extraction, Extractor, Overflow, Refused
from tile_eg.extract.failure import TooLarge
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.schedule import LoopStep, Schedule, Step, Storage

__all__ = ["Extraction", "Extractor", "LoopStep", "Overflow", "Refused", "Schedule", "Step", "Storage", "TooLarge", "extract"]


def extract(graph: Graph, chip: Chip, *, k: int = 4, model: str = "analytic", extractor: str = "exact") -> Extraction:
    """Up to `k` legal schedules with different decisions, cheapest first. TileError where the kernel has none.

    Where the solver finds nothing in its time, the beam takes over.
    """
    from tile_eg.extract.beam import Beam
    from tile_eg.extract.exact import Exact
    from tile_eg.extract.failure import no_schedule

    pricer = Pricer(graph, chip, search_model(model, chip))
    found = Exact().extract(graph, chip, pricer, k) if extractor == "exact" else Beam().extract(graph, chip, pricer, k)
    if not found.schedules and extractor == "exact" and found.gave_up:
        found = Beam().extract(graph, chip, pricer, k)
    if not found.schedules:
        raise no_schedule(graph, chip, pricer, found)
    return found
