"""Cost models: one a file, found by name or as "module:Class"; a model of your own needs no change here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tile_eg.chips import Chip
from tile_eg.cost_models.base import RankModel, SearchModel
from tile_eg.errors import TileError

__all__ = ["MODELS", "RankModel", "SearchModel", "rank_model", "search_model"]

MODELS = {"analytic": "tile_eg.cost_models.analytic:Analytic", "timeline": "tile_eg.cost_models.timeline:TimelineModel"}


def search_model(name: str, chip: Chip) -> SearchModel:
    """The search model called `name`, or the class "module:Class" made with the chip. TileError where there is none."""
    model = _make(name, chip)
    if not callable(getattr(model, "node_cost", None)):
        raise TileError(f"'{name}' cannot guide the search: it has no node_cost", help="a search model has node_cost(work)")
    return model


def rank_model(name: str, chip: Chip) -> RankModel:
    """The rank model called `name`, or the class "module:Class" made with the chip. TileError where there is none."""
    model = _make(name, chip)
    if not callable(getattr(model, "predict", None)):
        raise TileError(f"'{name}' cannot rank programs: it has no predict", help="a rank model has predict(programs)")
    return model


def _make(name: str, chip: Chip) -> Any:
    module, colon, cls = MODELS.get(name, name).partition(":")
    if not colon:
        raise TileError(f"unknown cost model '{name}'", help=f"known models: {', '.join(MODELS)}; or your own as module:Class")
    try:
        maker = getattr(import_module(module), cls)
    except (ImportError, AttributeError) as error:
        raise TileError(f"cannot load the cost model '{name}': {error}") from error
    return maker(chip)
