"""A level of memory for storages whose lives are known: packings, and the one whose operands meet least in their banks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import NamedTuple

from tile_eg.chips import Chip
from tile_eg.extract.banks import Banks, banks_of
from tile_eg.extract.base import Overflow, Refused
from tile_eg.extract.packing import ANY_BANK, Life, Placed, Rivals, least_bytes, packed, touch
from tile_eg.extract.schedule import Schedule, Storage, StorageId
from tile_eg.ir.sharing import Itself, once
from tile_eg.ops.types import Level

ORDERS: tuple[Callable[[Placed], tuple[int, ...]], ...] = (
    lambda x: (-x[2].bytes, x[1].first, x[0]),
    lambda x: (x[1].first, -x[2].bytes, x[0]),
)
"""In which order storages get their places: large ones first, and in order of birth."""


class Packing(NamedTuple):
    """The address of each storage, where they end, and in which of the `ORDERS` they got their places."""

    places: dict[int, int]
    used: int
    order: int


def pack_level(
    schedule: Schedule, lives: dict[int, Life], level: Level, align: int, rivals: Rivals, banks: Banks = ANY_BANK,
    limit: float = inf,
) -> Packing:  # fmt: skip
    """The packing of a level in the better order, above what is made once a block; what of that no tile reads takes turns where
    it does not fit the limit side by side."""
    ways = (_packing(schedule, lives, level, align, rivals, banks, limit, order) for order in range(len(ORDERS)))
    return min(ways, key=lambda p: p.used)


def _packing(
    schedule: Schedule, lives: dict[int, Life], level: Level, align: int, rivals: Rivals, banks: Banks, limit: float, order: int,
    aside: bool = False, blocks_first: bool = False,
) -> Packing:  # fmt: skip
    kept = kept_for_tiles(schedule)
    own = _behind(schedule, kept, 0, level, align, banks)
    base = -(-_end(schedule, own) // align) * align
    group = [
        (i, life, schedule.storages[i])
        for i, life in lives.items()
        if schedule.storages[i].level is level and i not in schedule.once
    ]
    group.sort(key=ORDERS[order])
    if blocks_first:
        group.sort(key=lambda x: x[0] not in banks.results)
    places, used = packed(group, align, rivals, banks, base, aside)
    once = schedule.once - kept
    before = _beside(schedule, places, base, align, lambda start: _behind(schedule, once, start, level, align, banks))
    if _end(schedule, before) > limit:
        made = sorted(((i, lives[i], schedule.storages[i]) for i in before), key=ORDERS[order])
        before = _beside(schedule, places, base, align, lambda start: packed(made, align, rivals, banks, start)[0])
    return Packing(own | before | places, max(used, _end(schedule, before)), order)


def _beside(
    schedule: Schedule, places: dict[int, int], base: int, align: int, placed: Callable[[int], dict[int, int]]
) -> dict[int, int]:
    """What a block makes before its tiles, `placed` from the least start on at which none of it lies where the other kind of core
    writes or reads: that may be in its first tile already."""
    before = placed(base)
    met = [(places[i], places[i] + schedule.storages[i].bytes) for i in (_met(schedule) & places.keys() if before else ())]
    starts = iter(sorted({-(-end // align) * align for _, end in met if end > base}))
    while any(at < high and at + schedule.storages[i].bytes > low for i, at in before.items() for low, high in met):
        before = placed(next(starts))
    return before


def _met(schedule: Schedule) -> frozenset[int]:
    """The storages that both kinds of core use."""
    return once("met", Itself(schedule.top), lambda: _new_met(schedule))


def _new_met(schedule: Schedule) -> frozenset[int]:
    cores: dict[int, str] = {}
    both: set[int] = set()
    for step, _ in schedule.walk():
        for sid in (step.dst, *step.srcs):
            if isinstance(sid, int) and cores.setdefault(sid, step.core) != step.core:
                both.add(sid)
    return frozenset(both)


def kept_for_tiles(schedule: Schedule) -> frozenset[int]:
    """What a block makes once and its tiles read; the rest of what it makes once leaves its place to them."""
    read = {s for step, _ in schedule.walk() if step.dst not in schedule.once for s in step.srcs if isinstance(s, int)}
    return schedule.once & read


def rivals_of(schedule: Schedule, lives: dict[int, Life], level: Level) -> Rivals:
    """The rivals among the storages of a level."""
    return Rivals((i, life, schedule.storages[i]) for i, life in lives.items() if schedule.storages[i].level is level)


def pack_apart(schedule: Schedule, lives: dict[int, Life], level: Level, chip: Chip, limit: int) -> Packing:
    """A packing in which operands lie in different bank groups, where that costs neither the room nor a copy of UB. Copies of a
    schedule in one order share it where they have as many slots."""
    of_level = ((i, life.key, s.slots) for i, life in lives.items() if (s := schedule.storages[i]).level is level)
    key = Itself(schedule.top), level, Itself(chip), limit, schedule.copies, schedule.once, tuple(of_level)
    return once("packing", key, lambda: _packed_apart(schedule, lives, level, chip, limit))


def _packed_apart(schedule: Schedule, lives: dict[int, Life], level: Level, chip: Chip, limit: int) -> Packing:
    align, rivals = max(32, chip.align(level)), rivals_of(schedule, lives, level)
    close = pack_level(schedule, lives, level, align, rivals, limit=limit)
    if level is not Level.UB or close.used > limit:
        return close
    for banks in banks_of(schedule, chip, _of_one_place(lives, close.places)):
        apart = pack_level(schedule, lives, level, align, rivals, banks, limit)
        if _as_roomy(schedule, apart.used, close.used, limit):
            return _aside(schedule, lives, level, align, rivals, banks, apart, limit)
    return close


def may_fit(schedule: Schedule, lives: dict[int, Life], level: Level, limit: int) -> bool:
    """False where a packing of a level surely ends beyond the limit: tiles need more bytes at one time."""
    group = [(life, schedule.storages[i]) for i, life in lives.items() if i not in schedule.once]
    group = [(life, s) for life, s in group if s.level is level]
    return any(life.heirs for life, _ in group) or least_bytes([(life, s.bytes) for life, s in group]) <= limit


def refuse_closer(schedule: Schedule, like: Schedule | None) -> None:
    """Refused where more of a schedule has to move closer than of another one."""
    if like and (schedule.shrunk > like.shrunk or schedule.crowded > like.crowded):
        raise Refused("capacity", "more has to move closer")


def _as_roomy(schedule: Schedule, used: int, least: int, limit: int) -> bool:
    """Whether a packing fits, with as many copies of UB as the closest one."""
    return used <= limit and (schedule.copies == 1 or limit // max(1, least) == limit // max(1, used))


def _aside(
    schedule: Schedule, lives: dict[int, Life], level: Level, align: int, rivals: Rivals, banks: Banks, apart: Packing,
    limit: int,
) -> Packing:  # fmt: skip
    """A packing in the same order, with less written to the banks that instructions read from, where that has as much room."""
    waits = banks.waits(apart.places, schedule.storages)
    for blocks_first in (False, True) if waits else ():
        other = _packing(schedule, lives, level, align, rivals, banks, limit, apart.order, True, blocks_first)
        less = banks.waits(other.places, schedule.storages)
        if _as_roomy(schedule, other.used, apart.used, limit) and less < waits:
            apart, waits = other, less
    return apart


def _of_one_place(lives: dict[int, Life], places: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Pairs that may take one place: by steps that write where they read, from trip to trip as well where a packing does so."""
    for i, life in lives.items():
        for j in sorted((life.in_place_of | life.heirs) & lives.keys()):
            if touch(life, lives[j]) or (i in places and places[i] == places.get(j)):
                yield i, j


def _behind(
    schedule: Schedule, which: Iterable[StorageId], base: int, level: Level, align: int, banks: Banks = ANY_BANK
) -> dict[int, int]:
    """Places one behind the other, from `base` on, for what a block makes before its tiles: there none waits for another one."""
    out: dict[int, int] = {}
    for sid in sorted(i for i in which if isinstance(i, int)):
        if schedule.storages[sid].level is level:
            out[sid] = banks.at(sid, -(-max(base, _end(schedule, out)) // align) * align)
    return out


def _end(schedule: Schedule, places: dict[int, int]) -> int:
    return max((at + schedule.storages[sid].bytes for sid, at in places.items()), default=0)


def overflow(schedule: Schedule, lives: dict[int, Life], level: Level, limit: int) -> Refused:
    """A refusal that names what lives together where a level is fullest."""
    live = _peak(schedule, lives, level)
    hot = {s.id for s in live}
    cut = [s.node for s, _ in schedule.walk() if s.dst in hot or s.scratch in hot]
    cut += [n for n in schedule.nodes if n.op in ("Keep", "Skew", "State", "NextCp")]
    cut += [d for s in schedule.storages.values() if s.held or s.given for d in s.decisions]  # the others have none to spare
    what = f"{sum(s.bytes for s in live)} bytes in {level}, which has {limit}"
    places = tuple((s.name, s.bytes, s) for s in sorted(live, key=lambda s: -s.bytes))
    return Refused("capacity", what, cut, Overflow(str(level), limit, places))


def _peak(schedule: Schedule, lives: dict[int, Life], level: Level) -> list[Storage]:
    """The storages of a level that are live together at its fullest moment."""
    group = [(life, schedule.storages[sid]) for sid, life in lives.items() if schedule.storages[sid].level is level]
    moments = sorted({life.first for life, _ in group})
    at = max(moments, key=lambda m: sum(s.bytes for life, s in group if life.first <= m <= life.last))
    return [s for life, s in group if life.first <= at <= life.last]
