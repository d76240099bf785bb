"""Cost models: one a file, found by name, by entry point or as "module:Class"; a model of your own needs no change here.

A package offers models to everyone under the entry point group `tile_eg.cost_models`. What a model answers is checked: a model
that raises, or gives what is no time, is named with the node that it was asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

from tile_eg.chips import Chip
from tile_eg.cost_models.base import RankModel, SearchModel
from tile_eg.errors import TileError, did_you_mean
from tile_eg.ir.machine import CORE_PIPES
from tile_eg.ir.program import Program
from tile_eg.timeline.work import Work

__all__ = [
    "MODELS", "RankModel", "Roles", "SearchModel", "named", "node_cost", "predicted", "rank_model", "roles", "search_model",
]  # fmt: skip

MODELS = {
    "roofline": "tile_eg.cost_models.roofline:Roofline",
    "analytic": "tile_eg.cost_models.analytic:Analytic",
    "timeline": "tile_eg.cost_models.timeline:TimelineModel",
    "table": "tile_eg.cost_models.table:Table",
}
GROUP = "tile_eg.cost_models"
PIPES = frozenset(f"{core}.{pipe}" for core, pipes in CORE_PIPES.items() for pipe in pipes)


def named(name: str, chip: Chip) -> Any:
    """The model called `name`, or the class "module:Class", made with the chip; "name@FILE" loads what one saved there.

    TileError where there is none, or where the file is none of its.
    """
    name, at, saved = name.partition("@")
    model = _make(name, chip)
    if at:
        model.load(Path(saved))
    return model


@dataclass(frozen=True)
class Roles:
    """The names of the model that guides the search and of the one that ranks what it found."""

    search: str = "analytic"
    rank: str = "timeline"


def roles(name: str | None, chip: Chip) -> Roles:
    """Who does what where a user wants the model called `name` (see `named`): what it cannot do, the default model does.

    TileError where there is none, or where it does neither.
    """
    if name is None:
        return Roles()
    model = named(name, chip)
    guides, ranks = (callable(getattr(model, method, None)) for method in ("node_cost", "predict"))
    if not guides and not ranks:
        raise TileError(f"'{name}' is no cost model: it has neither predict nor node_cost")
    return Roles(name if guides else Roles.search, name if ranks else Roles.rank)


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
        cost = {str(pipe): _number(cycles) for pipe, cycles in model.node_cost((work,)).items()}
    except TileError:
        raise
    except Exception as error:
        raise _fault(model, asked, f"raised {type(error).__name__}: {error}") from error
    for pipe, cycles in cost.items():
        if pipe not in PIPES:
            raise _fault(model, asked, f"said {cycles} cycles on '{pipe}'", f"there is no such pipe; {did_you_mean(pipe, PIPES)}")
        if not isfinite(cycles) or cycles < 0:
            raise _fault(model, asked, f"said {cycles} cycles on {pipe}")
    return cost


def predicted(model: RankModel, programs: Sequence[Program]) -> list[float]:
    """What a rank model says of programs, in microseconds. TileError where it fails, or where that is no time."""
    asked = f"{len(programs)} programs of '{programs[0].name}'" if programs else "no program"
    try:
        times = [_number(t) for t in model.predict(programs)]
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


def _number(value: Any) -> float:
    """A number of any library as Python's. TypeError for a text, which `float` would read."""
    if isinstance(value, str | bytes):
        raise TypeError(f"{value!r} is a text, not a number")
    return float(value)


def _fault(model: SearchModel | RankModel, asked: str, what: str, help: str = "") -> TileError:
    name = getattr(model, "name", type(model).__name__)
    help = help or "a cost is a finite number, at least 0"
    return TileError(f"the cost model '{name}', asked for {asked}, {what}", help=help)


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
    except Exception as error:
        raise TileError(f"cannot load the cost model '{name}': {type(error).__name__}: {error}") from error
    try:
        return maker(chip)
    except TileError:
        raise
    except Exception as error:
        what = f"making the cost model '{name}' failed: {type(error).__name__}: {error}"
        raise TileError(what, help="a model is a class that is made with a chip: def __init__(self, chip)") from error


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
