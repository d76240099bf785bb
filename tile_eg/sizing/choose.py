"""The few best candidates for open block sizes go the whole way; the predicted time of the planned kernel decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tile_eg.chips import Chip
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.values import Values
from tile_eg.sizing.candidates import Candidate, Climb, named, shortlist

RESORTS = 3  # sizes that are tried where none of the best can be compiled: those that fit and need least room
Made = TypeVar("Made")


@dataclass(frozen=True)
class Trial:
    """Block sizes that were tried: microseconds by the quick estimate, and as predicted; None where they cannot be compiled."""

    sizes: Mapping[str, int]
    estimated: float
    predicted: float | None
    problem: str = ""

    def __str__(self) -> str:
        return ", ".join(f"{name}={n}" for name, n in self.sizes.items())


@dataclass(frozen=True)
class Chosen(Generic[Made]):
    """What was made at the best sizes, and all that was tried, best first. `estimated` counts the estimates."""

    made: Made
    trials: tuple[Trial, ...]
    estimated: int


def choose(
    kernel: OpenKernel,
    chip: Chip,
    count: int,
    to_values: Callable[[Kernel], Values],
    make: Callable[[Kernel], Made],
    time: Callable[[Made], float],
    faults: tuple[type[Exception], ...] = (TileError,),
) -> Chosen[Made]:
    """Makes the kernel at the `count` sizes that look best, and takes the fastest by `time`, in microseconds.

    `faults` are the errors that rule sizes out; where all are ruled out, the first one is raised, with what was tried.
    """
    climb = Climb(kernel, chip, to_values)
    found = climb.run()
    trials: list[tuple[Trial, Made | None]] = []
    fault: Exception | None = None
    for c in [*(best := shortlist(found, count)), *_resorts(found, best)]:
        if c not in best and any(made for _, made in trials):
            break
        try:
            made = make(kernel.build(named(kernel.open, c.sizes)))
            trials.append((_trial(kernel, chip, c, time(made)), made))
        except faults as error:
            fault = fault or error
            trials.append((_trial(kernel, chip, c, None, _message(error)), None))
    ranked = sorted(trials, key=lambda t: t[0].predicted or float("inf"))
    if not ranked or ranked[0][1] is None:
        raise _none(kernel, [t for t, _ in ranked], fault)
    return Chosen(ranked[0][1], tuple(t for t, _ in ranked), len(climb.seen))


def _trial(kernel: OpenKernel, chip: Chip, c: Candidate, predicted: float | None, problem: str = "") -> Trial:
    return Trial(named(kernel.open, c.sizes), chip.microseconds(c.estimate.cycles), predicted, problem)


def _message(error: Exception) -> str:
    return error.message if isinstance(error, TileError) else str(error)


def _resorts(found: Sequence[Candidate], tried: Sequence[Candidate]) -> list[Candidate]:
    others = [c for c in found if c not in tried and c.excess <= 1]
    return sorted(others, key=lambda c: (c.excess, sum(c.estimate.bytes.values()), c.sizes))[:RESORTS]


def _none(kernel: OpenKernel, trials: Sequence[Trial], fault: Exception | None) -> Exception:
    """The reason why the best candidate cannot be made, with the sizes that were tried."""
    if fault is None:
        return TileError(f"no sizes were found for {', '.join(kernel.open)}: it can be built at none", help="give numbers")
    if not isinstance(fault, TileError):
        return fault
    tried = tuple((f"with {t}: {t.problem}", None) for t in trials if t.problem != fault.message)
    first = next(t for t in trials if t.problem == fault.message)
    error = TileError(f"with {first}: {fault.message}", fault.span, help=fault.help, notes=(*fault.notes, *tried))
    error.source = fault.source
    return error
