"""Where flag ids run out, a ring between the two pipes that lack them gives up a slot: the others have none of their ids."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tile_eg.chips import load_chip
from tile_eg.emit.sync.trace import FlagsRunOut
from tile_eg.extract.flags import shallower
from tile_eg.extract.schedule import Schedule
from tile_eg.frontend.text import load_text
from tile_eg.ops.types import Level
from tile_eg.search import planning
from tile_eg.search.compiler import lower

ATTENTION = Path(__file__).parents[2] / "examples" / "flash_attention.tile"


@cache
def best(**sizes: int) -> Schedule:
    kernel = load_text(ATTENTION.read_text(encoding="utf-8"), str(ATTENTION)).instantiate(sizes)
    return lower(kernel).chosen.schedule


def slots(schedule: Schedule, *levels: Level) -> dict[int, int]:
    return {s.id: s.slots for s in schedule.storages.values() if s.level in levels}


@pytest.mark.slow
def test_a_ring_between_the_pipes_that_lack_ids_is_made_shallower() -> None:
    """Deeper ones, which the cores meet in, are left as they are."""
    schedule = copy_of(best(S=256))
    before = slots(schedule, *Level)
    assert shallower(schedule, ("AIV", "MTE2", "V"))
    (changed,) = [sid for sid, n in slots(schedule, *Level).items() if n != before[sid]]
    assert schedule.storages[changed].level is Level.UB and before[changed] < max(before.values())


def copy_of(schedule: Schedule) -> Schedule:
    return replace(schedule, storages={sid: replace(s) for sid, s in schedule.storages.items()})


@pytest.mark.slow
def test_results_that_take_turns_give_up_no_slot() -> None:
    """They would get it back with their turns, and the search for flags would never end."""
    schedule = replace(copy_of(best(S=256)), copies=1)
    rings = frozenset(s.id for s in schedule.storages.values() if s.spare > 0)
    assert rings and shallower(replace(copy_of(schedule)))
    assert not shallower(replace(copy_of(schedule), turns=rings))


@pytest.mark.slow
def test_where_no_depth_has_enough_ids_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = copy_of(best(S=256))
    looked_at: list[int] = []

    def refused(schedule: Schedule, chip: object) -> FlagsRunOut:
        looked_at.append(sum(slots(schedule, *Level).values()))
        return FlagsRunOut("too few")

    monkeypatch.setattr(planning, "_planned_or_why", refused)
    with pytest.raises(FlagsRunOut):
        planning.plan_schedule(schedule, load_chip("910B2"))
    depths = slots(schedule, *Level).values()
    assert len(looked_at) == planning.PATIENCE + 1 < sum(depths) - len(depths) and looked_at[-1] < min(looked_at[:-1])


@pytest.mark.long
@pytest.mark.slow
def test_what_passes_between_the_cores_is_as_deep_where_ids_of_loads_run_out() -> None:
    """At 8192 rows the vector cores load a tile more than at 256, and a slot of another one is what has to go."""
    assert max(slots(best(S=8192), Level.WS).values()) == max(slots(best(S=256), Level.WS).values())
