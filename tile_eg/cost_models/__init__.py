"""Cost models: one a file, found by name, by entry point or as "module:Class"; a model of your own needs no change here.

A package offers models to everyone under the entry point group `tile_eg.cost_models`. What a model answers is checked: a model
that raises, or gives what is no time, is named with the node that it was asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tile_eg.chips import Chip
from tile_eg.cost_models.answers import FAULTS, ModelFault, made, node_cost, observed, patience, predicted, scored, taught
from tile_eg.cost_models.base import ContextModel, RankModel, SearchModel
from tile_eg.errors import TileError, did_you_mean
from tile_eg.ops.records import record

__all__ = [
    "FAULTS", "MODELS", "ContextModel", "ModelFault", "RankModel", "Roles", "SearchModel", "context_model", "named", "node_cost",
    "observed", "patience", "predicted", "rank_model", "roles", "scored", "search_model", "taught",
]  # fmt: skip

MODELS = {
    "roofline": "tile_eg.cost_models.roofline:Roofline",
    "analytic": "tile_eg.cost_models.analytic:Analytic",
    "timeline": "tile_eg.cost_models.timeline:TimelineModel",
    "table": "tile_eg.cost_models.table:Table",
}
GROUP = "tile_eg.cost_models"
MADE = "a model is a class that is made with a chip: def __init__(self, chip)"
SOUGHT = "a module is looked for in the current folder, in those of PYTHONPATH, and among what is installed"
SAVED = "load(path) reads what save(path) wrote: `tile-eg teach` makes such a file"


def named(name: str, chip: Chip) -> Any:
    """The model called `name`, or the class "module:Class", made with the chip; "name@FILE" loads what one saved there.

    TileError where there is none, or where the file is none of its.
    """
    name, at, saved = name.partition("@")
    model = _make(name, chip)
    if at:
        if not callable(getattr(model, "load", None)):
            raise TileError(f"the cost model '{name}' has no load(path): it reads no file", help=f"--cost-model {name}")
        _tried(f"the cost model '{name}' cannot read '{saved}'", type(model).__module__, lambda: model.load(Path(saved)), SAVED)
    return model


@record
class Roles:
    """The names of the models that price the nodes, order candidates by their context (where one is wanted), and decide."""

    search: str = "analytic"
    rank: str = "timeline"
    context: str | None = None


def roles(name: str | None, chip: Chip) -> Roles:
    """Who does what where a user wants the model called `name` (see `named`): what it cannot do, the default model does.

    TileError where there is none, or where it does nothing of these.
    """
    if name is None:
        return Roles()
    model = named(name, chip)
    guides, ranks, orders = (callable(getattr(model, method, None)) for method in ("node_cost", "predict", "score"))
    if not guides and not ranks and not orders:
        help = "a search model has node_cost(work), a context model score(contexts), a rank model predict(programs)"
        raise TileError(f"'{name}' is not a cost model: it has neither predict nor node_cost, nor score", help=help)
    return Roles(name if guides else Roles.search, name if ranks else Roles.rank, name if orders else None)


def search_model(name: str, chip: Chip) -> SearchModel:
    """The search model called `name` (see `named`). TileError where there is none."""
    model = named(name, chip)
    if not callable(getattr(model, "node_cost", None)):
        raise TileError(f"'{name}' cannot guide the search: it has no node_cost", help="a search model has node_cost(work)")
    return model


def context_model(name: str | None, chip: Chip) -> ContextModel | None:
    """The context model called `name` (see `named`); None where none is wanted. TileError where there is none of this name."""
    if name is None:
        return None
    model = named(name, chip)
    if not callable(getattr(model, "score", None)):
        raise TileError(f"'{name}' cannot order candidates: it has no score", help="a context model has score(contexts)")
    return model


def rank_model(name: str, chip: Chip) -> RankModel:
    """The rank model called `name` (see `named`). TileError where there is none."""
    model = named(name, chip)
    if not callable(getattr(model, "predict", None)):
        raise TileError(f"'{name}' cannot rank programs: it has no predict", help="a rank model has predict(programs)")
    return model


def _make(name: str, chip: Chip) -> Any:
    path = MODELS.get(name) or _entry_points().get(name, name)
    module, colon, cls = path.partition(":")
    if not colon:
        known = (*MODELS, *_entry_points())
        raise TileError(f"unknown cost model '{name}'", help=f"{did_you_mean(name, known)}; or your own as module:Class")
    maker = _tried(f"cannot load the cost model '{name}'", module, lambda: getattr(_imported(module), cls), MADE)
    return _tried(f"making the cost model '{name}' failed", module, lambda: maker(chip), MADE)


def _tried(failed: str, module: str, making: Callable[[], Any], help: str) -> Any:
    """What comes of a step on the way to a model. A module or class that is not there is no fault of the model's: a TileError."""
    try:
        return made(failed, module.startswith("tile_eg."), making, help)
    except (ImportError, AttributeError) as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        raise TileError(f"{failed}: {error}", help=SOUGHT if missing else help) from error


def _imported(module: str) -> ModuleType:
    with _here():
        return import_module(module)


@contextmanager
def _here() -> Iterator[None]:
    """The current folder is where a user's own modules are, also where a console script runs."""
    sys.path.append(os.getcwd())
    try:
        yield
    finally:
        sys.path.pop()


def _entry_points() -> dict[str, str]:
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=GROUP)}
