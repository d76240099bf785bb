"""What a cost model is asked, and what it answers: checked, and waited for no longer than the user has patience.

A model that raises, answers what is no time or too few of them, or does not answer at all, is named with what it was asked for.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from tile_eg.cost_models.base import ContextModel, RankModel, SearchModel
from tile_eg.errors import TileError, did_you_mean
from tile_eg.ir.machine import CORE_PIPES
from tile_eg.ir.program import Program
from tile_eg.timeline.instruction import Work

if TYPE_CHECKING:
    from tile_eg.cost_models.context import Context

PIPES = frozenset(f"{core}.{pipe}" for core, pipes in CORE_PIPES.items() for pipe in pipes)
FAULTS = ("stop", "default")
"""What a search may do when its cost model fails: stop with an error, or begin again with the default model and say so."""
PATIENCE = 60.0
"""Seconds that a model of a user's may take for one answer."""
_patience: ContextVar[float] = ContextVar("patience", default=PATIENCE)
Model = SearchModel | RankModel | ContextModel
T = TypeVar("T")


class ModelFault(TileError):
    """A cost model gave no answer that can be used. `at` is which of the programs or candidates that it was asked for, from 0."""

    at: int | None = None


class _TooLate(Exception):
    """Raised in a model that takes too long."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Within it a model of a user's may take so many seconds for one answer."""
    token = _patience.set(seconds)
    try:
        yield
    finally:
        _patience.reset(token)


def node_cost(model: SearchModel, work: Work) -> dict[str, float]:
    """What a search model says of one instruction. TileError where it fails, or where that is no number of cycles."""
    asked = f"{work.op} of {work.rows} x {work.cols} {work.dtype}"
    cost = _asked(model, asked, lambda: {str(pipe): _number(cycles) for pipe, cycles in model.node_cost((work,)).items()})
    for pipe, cycles in cost.items():
        if pipe not in PIPES:
            raise _fault(model, asked, f"said {cycles} cycles on '{pipe}'", f"there is no such pipe; {did_you_mean(pipe, PIPES)}")
        if not isfinite(cycles) or cycles < 0:
            raise _fault(model, asked, f"said {cycles} cycles on {pipe}")
    return cost


def predicted(model: RankModel, programs: Sequence[Program]) -> list[float]:
    """What a rank model says of programs, in microseconds. TileError where it fails, or where that is no time."""
    asked = f"{len(programs)} programs of '{programs[0].name}'" if programs else "no program"
    return _times(model, asked, "microseconds of program", len(programs), lambda: model.predict(programs))


def scored(model: ContextModel, contexts: Sequence[Context]) -> list[float]:
    """What a context model says of candidates: less is better. TileError where it fails, or where that is no number."""
    asked = f"{len(contexts)} candidates of '{contexts[0].kernel}'" if contexts else "no candidate"
    return _times(model, asked, "of candidate", len(contexts), lambda: model.score(contexts), least=-float("inf"))


def _times(
    model: Model, asked: str, of: str, count: int, answer: Callable[[], Sequence[float]], least: float = 0.0
) -> list[float]:
    times = _asked(model, asked, lambda: [_number(t) for t in answer()])
    if len(times) != count:
        raise _fault(model, asked, f"gave {len(times)} times")
    for n, time in enumerate(times):
        if not isfinite(time) or time < least:
            fault = _fault(model, asked, f"said {time} {of} {n + 1}")
            fault.at = n
            raise fault
    return times


def _asked(model: Model, asked: str, answer: Callable[[], T]) -> T:
    """The answer of a model. What goes wrong in one of our own is told as it is."""
    try:
        with _limited(model):
            return answer()
    except _TooLate:
        what = f"gave no answer in {_patience.get():g} seconds"
        raise _fault(model, asked, what, "more patience is given by --model-seconds") from None
    except TileError:
        raise
    except Exception as error:
        raise _fault(model, asked, f"raised {type(error).__name__}: {error}") from error


@contextmanager
def _limited(model: Model) -> Iterator[None]:
    """Ends what a model of a user's computes in Python when it takes too long; on the main thread, where that can be done."""
    own = type(model).__module__.startswith("tile_eg.")
    if own or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_: object) -> None:
        raise _TooLate

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, _patience.get())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _number(value: Any) -> float:
    """A number of any library as Python's. TypeError for a text, which `float` would read."""
    if isinstance(value, str | bytes):
        raise TypeError(f"{value!r} is a text, not a number")
    return float(value)


def _fault(model: Model, asked: str, what: str, help: str = "") -> ModelFault:
    name = getattr(model, "name", type(model).__name__)
    way_out = "--model-faults default goes on without the model"
    help = help or f"a cost is a finite number, at least 0, one for each asked for; {way_out}"
    return ModelFault(f"the cost model '{name}', asked for {asked}, {what}", help=help)
