"""The rest: tiles that would not fill a turn of all cores, their sums in parts on all of them instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from tile_eg.search.bounds import timing
from tile_eg.search.candidates import Candidate, Dropped, plan_each, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.persistent import best_persistent
from tile_eg.search.queue import Made, Offer
from tile_eg.search.split_k import planned_phase
from tile_eg.timeline.meetings import meeting

if TYPE_CHECKING:
    from tile_eg.extract.schedule import Rest, Schedule
    from tile_eg.transforms.split_k import Parts, Tiles

NAME = "rest-in-parts"
GAINED = 0.97
"""The least part of the time of equal shares that a launch with a copy may take: other turns go before that then (assumed)."""
COLD = 1.25
"""Times its quick estimate that a sum in parts takes at the least of a turn behind a copy: 1.27 to 1.6 in seven products."""
WHOLE = 0.92
"""The part of what whole turns take alone that they take at the least beside what adds up the sums: 0.92, else 1 to 1.06, in ten
products."""
SUMS = 0.9
"""The part of their quick estimate that sums in parts take at the least where no copy is beside them: 0.96 to 1.1 in ten
products."""


def offers(form: Form) -> Iterator[Offer]:
    """One for each form whose tiles fill several turns of all cube cores, and a part of one more, and have long sums."""
    values, cores = form.values, form.setting.chip.cube_cores
    if not form.candidates or values.sizes or values.shared or values.blocks < cores or not values.blocks % cores:
        return
    from tile_eg.transforms.split_k import loop_of_sums

    if loop_of_sums(values):
        parts = cache(partial(_parts, form))
        made, least = partial(_made, form, parts), partial(_least, form, parts)
        yield Offer(MOVES[NAME], "the best schedule", 0.0, made, form, closer=least)


def _begun(form: Form) -> Candidate | None:
    """What it is made of: the best candidate where that is persistent or loads from strips, else the best persistent one."""
    packed = (c for c in form.candidates if c.schedule.persistent and c.schedule.in_strips and not c.schedule.behind)
    found = [c for c in (best_persistent(form), next(packed, None)) if c is not None]
    return min(found, key=lambda c: c.microseconds, default=None)


def _least(form: Form, parts: Callable[[], tuple[Parts | None, float]]) -> float:
    """What the work takes with the parts in the place of a turn, or what HBM needs; where no meeting was before, what the whole
    turns take, and one. The quick estimate says what the parts take."""
    begun, chip = _begun(form), form.setting.chip
    if begun is None or begun.planned.program.blocks != chip.cube_cores:
        return float("inf")
    time, turns = timing(begun), -(-form.values.blocks // chip.cube_cores)
    again = meeting(chip) if begun.schedule.one_phase else 0.0
    launch = chip.launch_us(chip.cube_cores, True) if again else time.launch_us

    def least(left: float) -> float:
        cycles = (1.0 if again else GAINED) * time.cycles * (turns - 1 + left) / turns
        return begun.microseconds * (launch + chip.microseconds(max(cycles, time.hbm_cycles) + again)) / time.microseconds

    evenly = least(form.values.blocks / chip.cube_cores - turns + 1)
    if not form.slower_than(evenly) or (found := parts())[0] is None:
        return evenly
    return _behind_sums(form, begun, found[0], launch) if again else max(evenly, least(COLD * found[1]))


def _behind_sums(form: Form, begun: Candidate, parts: Parts, launch: float) -> float:
    """What sums in parts, a meeting of all cores and whole turns take at the least: the turns are timed, the sums estimated."""
    from tile_eg.sizing.estimate import estimate

    chip, first = form.setting.chip, form.values.blocks % form.setting.chip.cube_cores
    planned, _ = plan_each([replace(_plain(begun.schedule), tiles=(first, form.values.blocks - first))], chip)
    if not planned:
        return 0.0
    (whole,), sums = ranked(planned, form.setting.model), estimate(parts.first, chip)
    cycles = WHOLE * timing(whole).cycles + SUMS * (sums.cycles - sums.launch) + meeting(chip)
    return begun.microseconds * (launch + chip.microseconds(cycles)) / timing(begun).microseconds


def _parts(form: Form) -> tuple[Parts | None, float]:
    """The rest in parts, and what they are estimated to take of a turn of whole sums; None where that is no less."""
    from tile_eg.sizing.phases import best_rest

    begun = _begun(form)
    assert begun is not None
    return best_rest(form.values, tiles_of(form, begun.schedule), form.setting.chip)


def _made(form: Form, parts: Callable[[], tuple[Parts | None, float]]) -> Made:
    begun, found = _begun(form), parts()[0]
    assert begun is not None
    if found is None:
        return Made(why="no parts of its sums take less than a turn of whole ones")
    rest, dropped = rest_of(form, found)
    planned, failed = plan_each(list(with_rest(begun.schedule, rest, form)) if rest else [], form.setting.chip)
    return Made(ranked(planned, form.setting.model), (*dropped, *failed), why="no schedule does the parts, or adds them")


def tiles_of(form: Form, schedule: Schedule) -> Tiles:
    """The first tiles of a persistent schedule, as many as are left of whole turns."""
    from tile_eg.emit.lower.tasks import TaskLoop
    from tile_eg.ir.index import BLOCK, var
    from tile_eg.transforms.split_k import Tiles

    loop, count = TaskLoop.of(schedule), form.values.blocks % form.setting.chip.cube_cores
    assert loop is not None
    return Tiles(count, loop.at(var(BLOCK), {BLOCK: (0, count - 1)}))


def rest_of(form: Form, parts: Parts) -> tuple[Rest | None, Dropped]:
    """Schedules of tiles in parts, and what failed; None where there are none.

    Of each phase that is the schedule which the search model likes best: in seven products the timeline's best of four took at
    most 0.3 % less.
    """
    from tile_eg.extract.schedule import Rest

    setting = replace(form.setting, options=replace(form.setting.options, k=1))
    (sums, failed), (added, others) = (planned_phase(values, setting) for values in (parts.first, parts.second))
    if not sums or not added:
        return None, (*failed, *others)
    return Rest(parts.count, form.values.blocks % form.setting.chip.cube_cores, sums[0][0], added[0][0]), ()


def with_rest(schedule: Schedule, rest: Rest, form: Form) -> Iterator[Schedule]:
    """The schedule without the rest in its turns; with as many turns before a copy is made as there may be."""
    plain = replace(_plain(schedule), rest=rest)
    cores, first, tiles = form.setting.chip.cube_cores, rest.tiles, form.values.blocks
    if schedule.second is None:
        yield replace(plain, tiles=(first, tiles - first))
        return
    assert schedule.tiles is not None
    turns = max(1, schedule.tiles[1] // cores)
    for before in (turns * cores, (turns + 1) * cores):
        if first + before < tiles:
            second = replace(schedule.second, tiles=(first + before, tiles - first - before))
            yield replace(plain, tiles=(first, before), second=second)


def _plain(schedule: Schedule) -> Schedule:
    """A schedule without what is only done to whole plans."""
    return replace(schedule, shuffled=False, prefetched=False, past_l2=frozenset())
