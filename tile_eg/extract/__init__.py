"""Chooses among the schedules of a graph: exactly where a solver finishes in time, by a beam where none does."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from tile_eg.chips import Chip
from tile_eg.cost_models import search_model
from tile_eg.egraph import Graph
from tile_eg.errors import TileError, did_you_mean
from tile_eg.extract.base import Extraction, Extractor, Overflow, Refused
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.schedule import LoopStep, Schedule, Step, Storage

__all__ = [
    "EXTRACTORS", "Extraction", "Extractor", "LoopStep", "Overflow", "Refused", "Schedule", "Step", "Storage", "extract",
    "found_schedules", "make_extractor",
]  # fmt: skip

EXTRACTORS = {
    "exact": "tile_eg.extract.exact:Exact",
    "beam": "tile_eg.extract.beam:Beam",
    "greedy": "tile_eg.extract.greedy:Greedy",
    "random": "tile_eg.extract.chaos:Random",
    "worst": "tile_eg.extract.chaos:Worst",
}
FALLBACK = {"exact": "beam", "beam": "greedy", "greedy": "beam"}
NOTHING: Mapping[str, Any] = MappingProxyType({})


def extract(
    graph: Graph,
    chip: Chip,
    *,
    k: int = 3,
    model: str = "analytic",
    extractor: str = "exact",
    settings: Mapping[str, Any] = NOTHING,
) -> Extraction:
    """Up to `k` legal schedules with different decisions, cheapest first. TileError where the kernel has none.

    Where the extractor finds nothing and another may, that one takes over: see `FALLBACK`.
    """
    found = found_schedules(graph, chip, k=k, model=model, extractor=extractor, settings=settings)
    if found.problem:
        raise found.problem
    return found


def found_schedules(
    graph: Graph,
    chip: Chip,
    *,
    k: int = 3,
    model: str = "analytic",
    extractor: str = "exact",
    settings: Mapping[str, Any] = NOTHING,
    resort: bool = True,
) -> Extraction:
    """As `extract`; where the kernel has no legal schedule, `problem` of what is returned says why.

    Without `resort` no other extractor takes over where the exact one's best choice is too large: that is put off.
    """
    pricer = Pricer(graph, chip, search_model(model, chip))
    found = _found(extractor, settings, graph, chip, pricer, k)
    tried = {found.extractor}
    while _may_be_missed(found) and (other := FALLBACK.get(found.extractor)) not in (None, *tried):
        if found.extractor == "exact" and found.too_large and not resort:
            found.put_off = True
            break
        assert other is not None
        found = _found(other, {}, graph, chip, pricer, k)
        tried.add(other)
    if not found.schedules:
        from tile_eg.extract.failure import no_schedule

        found.problem, found.full = no_schedule(graph, chip, pricer, found)
    return found


def _may_be_missed(found: Extraction) -> bool:
    """Whether an extractor found nothing where another one might. What is too large for the second one is so for the third."""
    if found.schedules:
        return False
    return found.gave_up if found.extractor == "exact" else found.extractor == "greedy" or not found.too_large


def _found(name: str, settings: Mapping[str, Any], graph: Graph, chip: Chip, pricer: Pricer, k: int) -> Extraction:
    """What an extractor finds. What goes wrong in one that is not ours is its author's to mend."""
    made = make_extractor(name, settings)
    try:
        return made.extract(graph, chip, pricer, k)
    except Exception as error:
        if name in EXTRACTORS or isinstance(error, TileError):
            raise
        raise TileError(f"the extractor '{name}' failed: {type(error).__name__}: {error}") from error


def make_extractor(name: str, settings: Mapping[str, Any] = NOTHING) -> Extractor:
    """The extractor called `name`, or the class "module:Class" made without arguments. TileError where there is none.

    "choices=FILE" takes the choice in a file.
    """
    if name.startswith("choices="):
        from tile_eg.extract.choices import Choices

        return Choices(name.removeprefix("choices="))
    module, colon, cls = EXTRACTORS.get(name, name).partition(":")
    if not colon:
        help = f"{did_you_mean(name, EXTRACTORS)}; or your own as module:Class"
        raise TileError(f"unknown extractor '{name}'", help=help)
    try:
        made = getattr(import_module(module), cls)(**settings)
    except (ImportError, AttributeError, TypeError) as error:
        raise TileError(f"cannot load the extractor '{name}': {error}") from error
    except (Exception, SystemExit) as error:
        raise TileError(f"cannot load the extractor '{name}': {type(error).__name__}: {error}") from error
    if not callable(getattr(made, "extract", None)):
        raise TileError(
            f"'{name}' is no extractor: it has no method extract", help="extract(graph, chip, pricer, k) -> Extraction"
        )
    return made
