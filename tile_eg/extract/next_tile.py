"""Loads for the next tile: those that a persistent kernel can issue while it works on the tile before it, and from when on."""

from __future__ import annotations

from collections.abc import Iterator

from tile_eg.extract.schedule import Item, LoopStep, Schedule, Step, Storage
from tile_eg.ops.physical import LOADS
from tile_eg.ops.types import Level


def next_loads(schedule: Schedule) -> dict[int, list[Step]]:
    """The loads that wait for nothing that a kernel makes, by where they can be issued for the next tile: behind how many of the
    items of `schedule.top` that are done for this tile."""
    if not schedule.persistent:
        return {}
    written = {step.dst for step, _ in schedule.walk()}
    out: dict[int, list[Step]] = {}
    for step in schedule.top:
        if isinstance(step, Step) and step.node.op in LOADS and not schedule.before_tiles(step):
            if not written.intersection(step.srcs) and (place := _free(schedule, step)) is not None:
                out.setdefault(place, []).append(step)
    return out


def _free(schedule: Schedule, load: Step) -> int | None:
    """Behind how many items the next tile may have the place of a load; None where others have it, too."""
    storage = schedule.storages[load.dst]  # type: ignore[index]
    if (storage.level is Level.UB and schedule.copies > 1) or (storage.ring == 0 and storage.slots > 1):
        return 0
    uses = [n for n, item in enumerate(schedule.top) if any(storage.id in (s.dst, s.scratch, *s.srcs) for s in _steps(item))]
    return None if any(_meet(schedule, storage, other) for other in _others(schedule, storage)) else uses[-1] + 1


def _others(schedule: Schedule, storage: Storage) -> Iterator[Storage]:
    """What else of its memory tiles use."""
    used = {s for step, _ in schedule.walk() if not schedule.before_tiles(step) for s in (step.dst, step.scratch, *step.srcs)}
    return (s for s in schedule.storages.values() if s.id in used and s is not storage and s.level is storage.level)


def _meet(schedule: Schedule, a: Storage, b: Storage) -> bool:
    """Whether two storages share bytes."""
    places = ((p, q) for p in schedule.addresses.get(a.id, ()) for q in schedule.addresses.get(b.id, ()))
    return any(p < q + b.slot_bytes and q < p + a.slot_bytes for p, q in places)


def _steps(item: Item) -> Iterator[Step]:
    if isinstance(item, LoopStep):
        for inside in item.body:
            yield from _steps(inside)
    else:
        yield item
