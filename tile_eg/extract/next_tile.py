"""Loads for the next tile: those that a persistent kernel can issue while it works on the tile before it, and from when on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tile_eg.extract.schedule import Item, LoopStep, Schedule, Step, Storage, StorageId
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.program import AIV
from tile_eg.ops.physical import LOADS
from tile_eg.ops.types import Level

V = "AIV.V"


def next_loads(schedule: Schedule) -> dict[int, list[Step]]:
    """The loads of what a kernel does not write, from places that the scalar unit need not read, by where they can be issued for
    the next tile: behind how many of the items of `schedule.top` that are done for this tile.

    None where the cube core takes part: it comes to its own tiles when it does, and the two cores meet in each.
    """
    out: dict[int, list[Step]] = {}
    for load in known_loads(schedule):
        if (place := _free(schedule, load)) is not None:
            out.setdefault(place, []).append(load)
    return out


def known_loads(schedule: Schedule) -> list[Step]:
    """The loads that can be issued for the next tile, as far as their places are free by then."""
    steps = [step for step, _ in schedule.walk()]
    if not schedule.persistent or any(step.core != AIV for step in steps):
        return []
    written = {step.dst for step in steps}
    loads = (s for s in schedule.top if isinstance(s, Step) and s.node.op in LOADS and not schedule.before_tiles(s))
    return [load for load in loads if not written.intersection((*load.srcs, _tensor(load))) and not _is_read(load)]


def waits_for_places(schedule: Schedule) -> bool:
    """Whether something that is loaded or stored shares its place with something else, so that one tile's waits for another's."""
    if schedule.copies > 1:
        return len(known_loads(schedule)) > sum(map(len, next_loads(schedule).values()))
    steps = [step for item in schedule.top if not schedule.before_tiles(item) for step in _steps(item)]
    used = dict.fromkeys(s for step in steps for s in (step.dst, step.scratch, *step.srcs) if isinstance(s, int))
    crossing = dict.fromkeys(s for step in steps if step.pipe != V for s in (step.dst, *step.srcs) if isinstance(s, int))
    held = schedule.storages
    return any(_meet(schedule, held[a], held[b]) for a in crossing for b in used if a != b)


def _tensor(load: Step) -> str:
    return load.node.payload[-5]


def _is_read(load: Step) -> bool:
    """Whether elements of a tensor say where the load begins, or how much of it there is."""
    return any(all_elements_in(e) for e in load.node.payload if isinstance(e, Expr))


def _free(schedule: Schedule, load: Step) -> int | None:
    """Behind how many items the next tile's load may be issued; None where something else would write to its place then.

    Behind the last that reads it where there is one place. Else behind the first that does: the load of this tile is then waited
    for, and the flag of that may be set again.
    """
    storage, uses = schedule.storages[load.dst], _uses(schedule)  # type: ignore[index]
    own, reads = uses[storage.id], [at for at, step in uses[storage.id] if step is not load]
    if not reads or any(step.dst == storage.id for _, step in own if step is not load):
        return None
    apart = (s for s in schedule.storages.values() if s is not storage and uses[s.id])
    others = [uses[s.id][0][0] for s in apart if _meet(schedule, storage, s)]
    if storage.level is Level.UB and schedule.copies > 1:
        return reads[0] if all(first > own[0][0] for first in others) else None
    if others:
        return None
    return reads[0] if storage.ring == 0 and storage.slots > 1 else reads[-1]


def _uses(schedule: Schedule) -> dict[StorageId, list[tuple[int, Step]]]:
    """By storage, the steps of a tile that use it, each with the number of the item of `schedule.top` that it is in, from 1."""
    out = defaultdict[StorageId, list[tuple[int, Step]]](list)
    for at, item in enumerate(schedule.top, 1):
        for step in _steps(item) if not schedule.before_tiles(item) else ():
            for sid in dict.fromkeys((step.dst, step.scratch, *step.srcs)):
                if sid is not None:
                    out[sid].append((at, step))
    return out


def _meet(schedule: Schedule, a: Storage, b: Storage) -> bool:
    """Whether two storages share bytes of one memory."""
    if a.level is not b.level:
        return False
    places = ((p, q) for p in schedule.addresses.get(a.id, ()) for q in schedule.addresses.get(b.id, ()))
    return any(p < q + b.slot_bytes and q < p + a.slot_bytes for p, q in places)


def _steps(item: Item) -> Iterator[Step]:
    if isinstance(item, LoopStep):
        for inside in item.body:
            yield from _steps(inside)
    else:
        yield item
