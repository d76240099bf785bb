"""Places apart: buffers that give up slots so that nothing waits for a place that it shares.

Memory is given out with all slots of a choice first, and tiles then share places where these leave no room beside them
(`Schedule.crowded`). A slot may be worth less than what waits for such a place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tile_eg.chips import Chip
from tile_eg.extract.base import Refused
from tile_eg.extract.flags import shrink
from tile_eg.extract.memory import ON_CHIP, assign
from tile_eg.extract.schedule import Schedule
from tile_eg.ops.types import Level


def apart(schedule: Schedule, chip: Chip) -> Schedule | None:
    """A copy in which as little as can be has a place that others wait for; None where fewer slots make no difference."""
    best = schedule
    for level in ON_CHIP:
        now: Schedule | None = best if _matters(best, level, chip) else None
        while now and shares_places(best) and (now := _shallower(now, level, chip)):
            best = now if now.crowded < best.crowded else best
    return best if best is not schedule else None


def _matters(schedule: Schedule, level: Level, chip: Chip) -> bool:
    """Whether fewer places are shared where every buffer of a level has the fewest slots."""
    rings = [s.id for s in schedule.storages.values() if s.level is level for _ in range(s.spare)]
    least = _without(schedule, rings, chip) if rings and shares_places(schedule) else None
    return least is not None and least.crowded < schedule.crowded


def shares_places(schedule: Schedule) -> bool:
    """Whether something waits for a place that it shares. Where a block has one tile, memory is given out so that nothing does
    in one step for each level."""
    return schedule.crowded > (0 if schedule.persistent else len(ON_CHIP))


def _shallower(schedule: Schedule, level: Level, chip: Chip) -> Schedule | None:
    """With one slot less of a level: that with which the fewest places are shared, and of several the smallest."""
    found = _with_one_less(schedule, level, chip)
    return min(found, key=lambda s: (s.crowded, s.peaks[level]), default=None)


def _with_one_less(schedule: Schedule, level: Level, chip: Chip) -> Iterator[Schedule]:
    for ring in [s.id for s in schedule.storages.values() if s.level is level and s.spare > 0]:
        if made := _without(schedule, [ring], chip):
            yield made


def _without(schedule: Schedule, rings: Iterable[int], chip: Chip) -> Schedule | None:
    """A copy with one slot less for each time that a buffer is named; None where it does not fit."""
    storages = {sid: replace(s) for sid, s in schedule.storages.items()}
    made = replace(schedule, storages=storages, peaks={}, addresses={})
    for ring in rings:
        shrink(made, storages[ring])
    try:
        assign(made, chip)
    except Refused:
        return None
    return made
