"""What a cost model is asked, and what it answers: checked, and waited for no longer than the user has patience.

A model that raises, answers what is no time or too few of them, or does not answer at all, is named with what it was asked for.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
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
STOPPED = "it is stopped, as it may never end; --model-seconds gives it more time"
MOST_SHOWN = 60
"""Characters of an answer that are shown."""
_patience: ContextVar[float] = ContextVar("patience", default=PATIENCE)
Model = SearchModel | RankModel | ContextModel
T = TypeVar("T")


class ModelFault(TileError):
    """A cost model gave no answer that can be used. `at` is which of the programs or candidates that it was asked for, from 0."""

    at: int | None = None


class _NoNumbers(Exception):
    """Raised where an answer is of another kind than what was asked for."""


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
    asked = f"asked for {work.op} of {work.rows} x {work.cols} {work.dtype}"
    cost = _asked(model, asked, lambda: _by_pipe(model.node_cost((work,))))
    for pipe, cycles in cost.items():
        if pipe not in PIPES:
            raise _fault(model, asked, f"said {cycles} cycles on '{pipe}'", f"there is no such pipe; {did_you_mean(pipe, PIPES)}")
        if not isfinite(cycles) or cycles < 0:
            raise _fault(model, asked, f"said {cycles} cycles on {pipe}")
    return cost


def predicted(model: RankModel, programs: Sequence[Program]) -> list[float]:
    """What a rank model says of programs, in microseconds. TileError where it fails, or where that is no time."""
    asked = f"asked for {len(programs)} programs of '{programs[0].name}'" if programs else "asked for no program"
    return _times(model, asked, "microseconds of program", len(programs), lambda: model.predict(programs))


def scored(model: ContextModel, contexts: Sequence[Context]) -> list[float]:
    """What a context model says of candidates: less is better. TileError where it fails, or where that is no number."""
    asked = f"asked for {len(contexts)} candidates of '{contexts[0].kernel}'" if contexts else "asked for no candidate"
    return _times(model, asked, "of candidate", len(contexts), lambda: model.score(contexts), least=-float("inf"))


def taught(model: Any, pairs: Sequence[tuple[Program, float]]) -> None:
    """Gives a rank model programs and their microseconds to learn from. TileError where it fails."""
    _asked(model, f"given {len(pairs)} programs to learn", lambda: model.update(pairs))


def observed(model: Any, contexts: Sequence[Context], microseconds: Sequence[float]) -> None:
    """Tells a context model the times of candidates. TileError where it fails."""
    _asked(model, f"told the times of {len(contexts)} candidates", lambda: model.observe(contexts, microseconds))


def made(failed: str, own: bool, making: Callable[[], T], help: str) -> T:
    """What a model's module or class gives, or what a model makes of its file. One of our `own` is waited for.

    ImportError and AttributeError are the caller's to tell; what else goes wrong is a ModelFault that begins with `failed`.
    """
    try:
        with _limited(own):
            return making()
    except _TooLate:
        raise ModelFault(f"{failed}: it took more than {_patience.get():g} seconds", help=STOPPED) from None
    except (TileError, ImportError, AttributeError):
        raise
    except (Exception, SystemExit) as error:
        raise ModelFault(f"{failed}: {type(error).__name__}: {error}", help=help) from error


def _times(
    model: Model, asked: str, of: str, count: int, answer: Callable[[], Sequence[float]], least: float = 0.0
) -> list[float]:
    times = _asked(model, asked, lambda: _numbers(answer()))
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
        with _limited(type(model).__module__.startswith("tile_eg.")):
            return answer()
    except _TooLate:
        raise _fault(model, asked, f"gave no answer in {_patience.get():g} seconds", STOPPED) from None
    except _NoNumbers as error:
        raise _fault(model, asked, str(error)) from None
    except TileError:
        raise
    except (Exception, SystemExit) as error:
        raise _fault(model, asked, f"raised {type(error).__name__}: {error}") from error


@contextmanager
def _limited(own: bool) -> Iterator[None]:
    """Ends what a model of a user's computes in Python when it takes too long; on the main thread, where that can be done."""
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


def _by_pipe(answer: Any) -> dict[str, float]:
    if not isinstance(answer, Mapping):
        raise _NoNumbers(f"gave {_shown(answer)}, which is no dict of cycles by pipe")
    return {str(pipe): _number(cycles) for pipe, cycles in answer.items()}


def _numbers(answer: Any) -> list[float]:
    if isinstance(answer, str | bytes | Mapping) or not hasattr(answer, "__iter__"):
        raise _NoNumbers(f"gave {_shown(answer)}, which is no list of numbers")
    return [_number(n) for n in answer]


def _number(value: Any) -> float:
    """A number of any library as Python's; not of a text, which `float` would read."""
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise _NoNumbers(f"gave {_shown(value)}, which is no number")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"a {type(value).__name__}"


def _fault(model: Model, asked: str, what: str, help: str = "") -> ModelFault:
    name = getattr(model, "name", type(model).__name__)
    help = help or "a cost is a finite number, at least 0, one for each asked for"
    return ModelFault(f"the cost model '{name}', {asked}, {what}", help=help)
