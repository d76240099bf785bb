"""Cost models: one a file, found by name, by entry point or as "module:Class"; a model of your own needs no change here.

A package offers models to everyone under the entry point group `tile_eg.cost_models`. What a model answers is checked: a model
that raises, or gives what is no time, is named with the node that it was asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

from tile_eg.chips import Chip
from tile_eg.cost_models.base import RankModel, SearchModel
from tile_eg.errors import TileError, did_you_mean
from tile_eg.ir.program import Program
from tile_eg.timeline.instruction import Work

__all__ = ["MODELS", "RankModel", "SearchModel", "named", "node_cost", "predicted", "rank_model", "search_model"]

MODELS = {
    "roofline": "tile_eg.cost_models.roofline:Roofline",
    "analytic": "tile_eg.cost_models.analytic:Analytic",
    "timeline": "tile_eg.cost_models.timeline:TimelineModel",
    "table": "tile_eg.cost_models.table:Table",
}
GROUP = "tile_eg.cost_models"


def named(name: str, chip: Chip) -> Any:
    """The model called `name`, or the class "module:Class", made with the chip; "name@FILE" loads what one saved there.

    TileError where there is none, or where the file is none of its.
    """
    name, at, saved = name.partition("@")
    model = _make(name, chip)
    if at:
        model.load(Path(saved))
    return model


def search_model(name: str, chip: Chip) -> SearchModel:
    """The search model called `name` (see `named`). TileError where there is none."""
    model = named(name, chip)
    if not callable(getattr(model, "node_cost", None)):
        raise TileError(f"'{name}' cannot guide the search: it has no node_cost", help="a search model has node_cost(work)")
    return model


def rank_model(name: str, chip: Chip) -> RankModel:
    """The rank model called `name` (see `named`). TileError where there is none."""
    model = named(name, chip)
    if not callable(getattr(model, "predict", None)):
        raise TileError(f"'{name}' cannot rank programs: it has no predict", help="a rank model has predict(programs)")
    return model


def node_cost(model: SearchModel, work: Work) -> dict[str, float]:
    """What a search model says of one instruction. TileError where it fails, or where that is no number of cycles."""
    asked = f"{work.op} of {work.rows} x {work.cols} {work.dtype}"
    try:
        cost = {str(pipe): float(cycles) for pipe, cycles in model.node_cost((work,)).items()}
    except TileError:
        raise
    except Exception as error:
        raise _fault(model, asked, f"raised {type(error).__name__}: {error}") from error
    for pipe, cycles in cost.items():
        if not isfinite(cycles) or cycles < 0:
            raise _fault(model, asked, f"said {cycles} cycles on {pipe}")
    return cost


def predicted(model: RankModel, programs: Sequence[Program]) -> list[float]:
    """What a rank model says of programs, in microseconds. TileError where it fails, or where that is no time."""
    asked = f"{len(programs)} programs of '{programs[0].name}'" if programs else "no program"
    try:
        times = [float(t) for t in model.predict(programs)]
    except TileError:
        raise
    except Exception as error:
        raise _fault(model, asked, f"raised {type(error).__name__}: {error}") from error
    if len(times) != len(programs):
        raise _fault(model, asked, f"gave {len(times)} times")
    for n, time in enumerate(times, 1):
        if not isfinite(time) or time < 0:
            raise _fault(model, asked, f"said {time} microseconds of program {n}")
    return times


def _fault(model: SearchModel | RankModel, asked: str, what: str) -> TileError:
    name = getattr(model, "name", type(model).__name__)
    return TileError(f"the cost model '{name}', asked for {asked}, {what}", help="a cost is a finite number, at least 0")


def _make(name: str, chip: Chip) -> Any:
    path = MODELS.get(name) or _entry_points().get(name, name)
    module, colon, cls = path.partition(":")
    if not colon:
        known = (*MODELS, *_entry_points())
        raise TileError(f"unknown cost model '{name}'", help=f"{did_you_mean(name, known)}; or your own as module:Class")
    try:
        with _here():
            maker = getattr(import_module(module), cls)
    except (ImportError, AttributeError) as error:
        raise TileError(f"cannot load the cost model '{name}': {error}") from error
    return maker(chip)


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
