"""Prefetch: a persistent kernel issues what it loads for the next tile while it works on this one.

Instructions are issued in order, and a pipe's queue holds few of them (`queue_depth` in the chips' tables): where a tile takes
more vector instructions than that, the loads of the next tile would be issued only when most of this one's work is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tile_eg.chips import Chip
from tile_eg.extract.base import Refused
from tile_eg.extract.flags import shrink
from tile_eg.extract.memory import assign
from tile_eg.extract.next_tile import known_loads, next_loads, waits_for_places
from tile_eg.extract.schedule import Schedule
from tile_eg.search.bounds import floor
from tile_eg.search.candidates import Candidate, Dropped, plan_each, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer


def offers(form: Form) -> Iterator[Offer]:
    """One for each form. It is made near the end of the search, of the schedules that are the best by then, as many as the budget
    of the move has."""
    if form.candidates and (most := _most(form)):
        make, closer = partial(_made, form), partial(_bound, form)
        yield Offer(MOVES["prefetch-tile"], "the best schedules", 0.0, make, form, weight=most, closer=closer)


def _most(form: Form) -> int:
    """How many of a form's schedules are planned with their loads ahead."""
    return MOVES["prefetch-tile"].tries[form.setting.options.level]


def _able(form: Form) -> list[Candidate]:
    """The schedules with loads that can be issued earlier, as far as places go: those whose busiest pipe has the least to do."""
    plain = (c for c in form.launchable if not c.schedule.finished and c.schedule.one_phase)
    return sorted((c for c in plain if known_loads(c.schedule)), key=lambda c: floor(c, form.setting.chip))[: _most(form)]


def _bound(form: Form) -> float:
    return min((floor(c, form.setting.chip) for c in _able(form)), default=float("inf"))


def _made(form: Form) -> Made:
    """The form's best schedules with their loads ahead; one whose bound is no better than what was found so far is left out."""
    chip, best = form.setting.chip, form.microseconds
    found: tuple[Candidate, ...] = ()
    dropped: Dropped = ()
    for candidate in _able(form):
        for schedule in _ways(candidate.schedule, chip) if floor(candidate, chip) < best else ():
            if floor(candidate, chip) < best:
                planned, refused = plan_each([schedule], chip)
                found, dropped = (*found, *ranked(planned, form.setting.model)), (*dropped, *refused)
                best = min([best, *(c.microseconds for c in found)])
    return Made(found, dropped)


def _ways(schedule: Schedule, chip: Chip) -> Iterator[Schedule]:
    """With its loads ahead, where they are; and in places of their own, if tiles would else wait for places and UB has room."""
    if next_loads(schedule):
        yield prefetched(schedule)
    apart = with_own_places(schedule, chip) if waits_for_places(schedule) else None
    if apart and apart.addresses != schedule.addresses and next_loads(apart):
        yield apart


def prefetched(schedule: Schedule) -> Schedule:
    """A copy of the schedule with its loads ahead: where flags run out, its own buffers give up slots."""
    storages = {sid: replace(s) for sid, s in schedule.storages.items()}
    return replace(schedule, storages=storages, peaks=dict(schedule.peaks), addresses=dict(schedule.addresses), prefetched=True)


def with_own_places(schedule: Schedule, chip: Chip) -> Schedule | None:
    """A copy with its loads ahead, each in one place where nothing else comes; None where UB has no room for that.

    A second place would gain nothing: the next tile's load is issued behind the first that reads this one's.
    """
    apart = replace(prefetched(schedule), own_places=True, copies=1, crowded=0)
    for storage in {load.dst: apart.storages[load.dst] for load in known_loads(apart)}.values():  # type: ignore[index]
        while storage.spare > 0:
            shrink(apart, storage)
    try:
        assign(apart, chip)
    except Refused:
        return None
    return apart
