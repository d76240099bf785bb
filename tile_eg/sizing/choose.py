"""The few best candidates for open block sizes go the whole way; the predicted time of the planned kernel decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from tile_eg.chips import Chip
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.values import Values
from tile_eg.sizing.candidates import Candidate, Climb, named, shortlist

RESORTS = 3  # sizes that are tried where none of the best can be compiled: those that fit and need least room
LARGER = 3  # sizes that do not fit as they are which are tried where all that do fill UB
CLOSE = 1.1  # how much slower than the fastest may be what is finished
Made = TypeVar("Made")


@dataclass(frozen=True)
class Trial:
    """Block sizes that were tried: microseconds by the quick estimate, and as predicted; None where they cannot be compiled."""

    sizes: Mapping[str, int]
    estimated: float
    predicted: float | None
    problem: str = ""

    def __str__(self) -> str:
        return _sizes_text(self.sizes)


@dataclass(frozen=True)
class Stages(Generic[Made]):
    """How a kernel is compiled: quickly, then to the end where that is worth it; and the predicted microseconds of either.

    At most `finished` choices of sizes are compiled to the end. `part` looks for the form of a kernel whose sums are in parts,
    where the estimate takes that for faster; None: sums stay whole.
    """

    make: Callable[[Kernel], Made]
    finish: Callable[[Made], Made]
    time: Callable[[Made], float]
    finished: int = 3
    part: Callable[[Made], Made] | None = None


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
    stages: Stages[Made],
    faults: tuple[type[Exception], ...] = (TileError,),
) -> Chosen[Made]:
    """Makes the kernel at the `count` sizes that look best, finishes those that are nearly the fastest, and takes the fastest.

    `faults` are the errors that rule sizes out; where all are ruled out, the first one is raised, with what was tried.
    """
    climb = Climb(kernel, chip, to_values, stages.part is not None)
    found = climb.run()
    made: dict[Candidate, Made] = {}
    failed: dict[Candidate, Exception] = {}
    best = list(dict.fromkeys([*shortlist(found, count), *_larger(found)]))
    for c in [*best, *_resorts(found, best)]:
        if c not in best and made:
            break
        try:
            whole = stages.make(kernel.build(named(kernel.open, c.sizes)))
            made[c] = stages.part(whole) if stages.part and c.estimate.parts > 1 else whole
        except faults as error:
            failed[c] = error
    if not made:
        raise _none(kernel, failed)
    finished = _worth_finishing({c: stages.time(m) for c, m in made.items()}, stages.finished)
    for c in finished:
        with suppress(*faults):  # then it stays as it is
            made[c] = stages.finish(made[c])
    ranked = sorted(made, key=lambda c: (stages.time(made[c]), c not in finished))
    trials = [_trial(kernel, chip, c, stages.time(made[c])) for c in ranked]
    trials += [_trial(kernel, chip, c, None, _message(error)) for c, error in failed.items()]
    return Chosen(made[ranked[0]], tuple(trials), len(climb.seen))


def _worth_finishing(times: Mapping[Candidate, float], most: int) -> list[Candidate]:
    """The fastest for each shape of what blocks store, as far as they are nearly the fastest of all.

    Without products also the one with the best estimate: what tiles gain from each other is not in the times yet.
    """
    first: dict[object, Candidate] = {}
    for c in sorted(times, key=lambda c: times[c]):
        first.setdefault(c.estimate.stored, c)
    found = [c for c in first.values() if times[c] <= CLOSE * min(times.values())][:most]
    best = min(times, key=lambda c: c.rank)
    return found if best in found or best.estimate.cube else [*found, best]


def _trial(kernel: OpenKernel, chip: Chip, c: Candidate, predicted: float | None, problem: str = "") -> Trial:
    return Trial(named(kernel.open, c.sizes), chip.microseconds(c.estimate.cycles), predicted, problem)


def _message(error: Exception) -> str:
    return error.message if isinstance(error, TileError) else str(error)


def _larger(found: Sequence[Candidate]) -> list[Candidate]:
    """Tiles for vector cores that go through in parts, as they do not fit: where the best that do fit have no room to load
    meanwhile, or are not estimated to be faster."""
    best = next((c for c in found if c.excess <= 1), None)
    enough = best.estimate.cycles if best and best.estimate.overlaps else None
    large = [c for c in found if c.excess > 1 and not c.estimate.cube and (enough is None or c.estimate.cycles < enough)]
    return sorted(large, key=lambda c: (c.estimate.cycles, c.sizes))[:LARGER]


def _resorts(found: Sequence[Candidate], tried: Sequence[Candidate]) -> list[Candidate]:
    others = [c for c in found if c not in tried and c.excess <= 1]
    return sorted(others, key=lambda c: (c.excess, sum(c.estimate.bytes.values()), c.sizes))[:RESORTS]


def _none(kernel: OpenKernel, failed: Mapping[Candidate, Exception]) -> Exception:
    """The reason why the best candidate cannot be made, with the sizes that were tried."""
    if not failed:
        return TileError(f"no sizes were found for {', '.join(kernel.open)}: it can be built at none", help="give numbers")
    tried = [f"with {_sizes_text(named(kernel.open, c.sizes))}: {_message(error)}" for c, error in failed.items()]
    fault = next(iter(failed.values()))
    if not isinstance(fault, TileError):
        return fault
    notes = tuple((text, None) for text in tried[1:])
    error = TileError(tried[0], fault.span, help=fault.help, notes=(*fault.notes, *notes))
    error.source = fault.source
    return error


def _sizes_text(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={n}" for name, n in sizes.items())
