"""The rest: tiles that would not fill a turn of all cores, their sums in parts on all of them instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tile_eg.search.bounds import timing
from tile_eg.search.candidates import Candidate, Dropped, plan_each, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.persistent import best_persistent
from tile_eg.search.queue import Made, Offer
from tile_eg.search.split_k import phase
from tile_eg.sizing.phases import meeting

if TYPE_CHECKING:
    from tile_eg.extract.schedule import Rest, Schedule
    from tile_eg.transforms.split_k import Parts, Tiles

NAME = "rest-in-parts"
GAINED = 0.97
"""The least part of the time of equal shares that a launch may take: the turns before a copy may be others then (assumed)."""


def offers(form: Form) -> Iterator[Offer]:
    """One for each form whose tiles fill several turns of all cube cores, and a part of one more, and have long sums."""
    values, cores = form.values, form.setting.chip.cube_cores
    if not form.candidates or values.sizes or values.shared or values.blocks < cores or not values.blocks % cores:
        return
    from tile_eg.transforms.split_k import divisible

    if divisible(values):
        yield Offer(MOVES[NAME], "the best schedule", 0.0, partial(_made, form), form, closer=partial(_least, form))


def _begun(form: Form) -> Candidate | None:
    """What it is made of: the best candidate where that is persistent or loads from strips, else the best persistent one."""
    packed = (c for c in form.candidates if c.schedule.persistent and c.schedule.second and c.schedule.parts)
    found = [c for c in (best_persistent(form), next(packed, None)) if c is not None]
    return min(found, key=lambda c: c.microseconds, default=None)


def _least(form: Form) -> float:
    """What equal shares of the work take, and what HBM needs; another meeting and kind of core, where there was none."""
    begun, chip = _begun(form), form.setting.chip
    if begun is None or begun.planned.program.blocks != chip.cube_cores:
        return float("inf")
    time, tiles = timing(begun), form.values.blocks
    cycles = time.cycles * tiles / (-(-tiles // chip.cube_cores) * chip.cube_cores)
    again = meeting(chip) if begun.schedule.one_phase else 0.0
    mixed = chip.launch_us(chip.cube_cores, True) if again else time.launch_us
    least = mixed + chip.microseconds(max(GAINED * cycles, time.hbm_cycles) + again)
    return begun.microseconds * least / time.microseconds


def _made(form: Form) -> Made:
    from tile_eg.sizing.phases import best_rest

    begun, chip = _begun(form), form.setting.chip
    assert begun is not None
    parts = best_rest(form.values, tiles_of(form, begun.schedule), chip)
    if parts is None:
        return Made(why="no parts of its sums take less than a turn of whole ones")
    rest, dropped = rest_of(form, parts)
    planned, failed = plan_each(list(with_rest(begun.schedule, rest, form)) if rest else [], chip)
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
    """The best schedules of tiles in parts, and what failed; None where there are none."""
    from tile_eg.extract.schedule import Rest

    (sums, failed), (added, others) = (phase(values, form.setting) for values in (parts.first, parts.second))
    if not sums or not added:
        return None, (*failed, *others)
    return Rest(parts.count, form.values.blocks % form.setting.chip.cube_cores, sums[0].schedule, added[0].schedule), ()


def with_rest(schedule: Schedule, rest: Rest, form: Form) -> Iterator[Schedule]:
    """The schedule without the rest in its turns; with as many turns before a copy is made as there may be."""
    plain = replace(schedule, rest=rest, shuffled=False, prefetched=False, past_l2=frozenset())
    cores, first, tiles = form.setting.chip.cube_cores, rest.tiles, form.values.blocks
    if schedule.second is None:
        yield replace(plain, tiles=(first, tiles - first))
        return
    assert schedule.tiles is not None
    turns = schedule.tiles[1] // cores
    for before in sorted({max(1, n) * cores for n in (turns, turns + 1)}):
        if first + before < tiles:
            second = replace(schedule.second, tiles=(first + before, tiles - first - before))
            yield replace(plain, tiles=(first, before), second=second)
