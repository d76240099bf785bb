"""Shuffle-K: the best schedules of a form with sums that each core begins at another trip, so that cores read other lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tile_eg.search.bounds import bound_of, floor
from tile_eg.search.candidates import Candidate, fastest_first, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.planned import Planned
from tile_eg.search.queue import NO_BETTER, Made, Offer
from tile_eg.timeline.engine import least

if TYPE_CHECKING:
    from tile_eg.extract.schedule import Schedule

NEAR = 1.1
"""Schedules that take so many times the best one's time gain no more by reading other lines than it does (assumed)."""
ALIKE = 1.01
"""Times what a shuffled kernel is expected to take that it takes at the most."""


def offers(form: Form) -> Iterator[Offer]:
    """One for each form: of what are its best schedules once all else was tried."""
    if form.candidates and form.values.sizes is None:
        yield Offer(MOVES["shuffle-k"], "the best schedules", 0.0, partial(_made, form), form, closer=partial(_least, form))


def _least(form: Form) -> float:
    first = next(form.launchable, None)
    return floor(first, form.setting.chip) if first else float("inf")


def _made(form: Form) -> Made:
    """The plans are shared: flags and buffers are those of the trips as they come."""
    best = min(c.microseconds for c in form.launchable)
    near = [c for c in form.launchable if c.microseconds <= NEAR * best]
    found = _near(near, _alike(form))
    if not found:
        return Made(why="no loop of products loads what it adds in whole tiles from trip to trip")
    return Made(_best_first(found, form), why=NO_BETTER)


Found = tuple[float, tuple["Schedule", Planned], Candidate]
"""Microseconds that a shuffled kernel is expected to take, the kernel, and what it is made of."""


def _near(candidates: list[Candidate], alike: float) -> list[Found]:
    """What is made of candidates, the fastest first; but of those that would not come near the others if they gained as much."""
    found: list[Found] = []
    for c in candidates:
        gained = min((expected / like.microseconds for expected, _, like in found), default=0.0)
        least = min((expected for expected, *_ in found), default=float("inf"))
        if c.microseconds * gained < alike * least and (made := with_shuffled_sums(c.schedule, c.planned)):
            found.append((_expected(made[1], c), made, c))
    return found


def _alike(form: Form) -> float:
    return ALIKE if form.setting.options.effort != "full" else float("inf")


def _expected(planned: Planned, like: Candidate) -> float:
    """Microseconds of a shuffled kernel that waits as much beside its loads as it did unshuffled."""
    chip = planned.chip
    return like.microseconds * least(planned.program, chip) / least(like.planned.program, chip)


def _best_first(found: list[Found], form: Form) -> tuple[Candidate, ...]:
    """The candidates, ranked, that may be faster than the form's best and than what was found; unless the effort is full, also
    of those only that are expected to be hardly slower."""
    made: dict[int, Candidate] = {}
    alike = _alike(form)
    for n, (expected, one, like) in sorted(enumerate(found), key=lambda item: item[1][0]):
        best = min((c.microseconds for c in made.values()), default=float("inf"))
        if all(hoped < best and form.slower_than(hoped) for hoped in (expected / alike, bound_of(one[1], like))):
            (made[n],) = ranked([one], form.setting.model)
    return fastest_first([made[n] for n in sorted(made)])


def with_shuffled_sums(schedule: Schedule, planned: Planned) -> tuple[Schedule, Planned] | None:
    """A planned schedule whose cores begin their sums at other trips; None where it has no such sums."""
    from tile_eg.emit.shuffle_k import shuffled

    program = shuffled(planned.program)
    return (replace(schedule, shuffled=True), Planned(program, planned.chip)) if program else None
