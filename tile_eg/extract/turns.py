"""Turns in L0C: where a trip has more results of products than L0C has places, they take these in the order of issue.

Each result has another place than the one before it, in the next trip as well, so that the fixpipe empties one place while the
next product fills another. With three results and two places a result lies elsewhere in every other trip.
"""

from __future__ import annotations

from math import gcd

from tile_eg.chips import Chip
from tile_eg.extract.schedule import LoopStep, Schedule, Step
from tile_eg.ops.physical import PRODUCTS
from tile_eg.ops.types import Level


def take_turns(schedule: Schedule, chip: Chip) -> None:
    """Gives the results of the one loop of products their places in turns, where that is all that lies in L0C. Their slots are
    then as many as there are turns, and none of them is to spare."""
    schedule.turns = frozenset()
    held = {s.id for s in schedule.storages.values() if s.level is Level.L0C and s.id in schedule.addresses}
    loops = [x for x in schedule.top if isinstance(x, LoopStep) and _results(x)]
    if len(loops) != 1 or {r for r, _ in _results(loops[0])} != held or schedule.graph.values.tile_each:
        return
    results, loop = _results(loops[0]), loops[0]
    size = max(schedule.storages[r].slot_bytes for r, _ in results)
    places = chip.level_bytes(Level.L0C) // size
    if len(results) <= places or not _read_in_time(loop, [r for r, _ in results], places):
        return
    schedule.turns = frozenset(result for result, _ in results)
    for n, (result, lag) in enumerate(results):
        own = schedule.storages[result]
        own.slots = places // gcd(len(results), places)
        own.ring = loop.loop if own.slots > 1 else None
        turns = ((trip + lag) * len(results) + n for trip in range(own.slots))
        schedule.addresses[result] = tuple(turn % places * size for turn in turns)
    schedule.peaks[Level.L0C] = places * size


def _results(loop: LoopStep) -> list[tuple[int, int]]:
    """The places in L0C that a loop's own products fill, in the order in which they begin, with their lags."""
    steps = (x for x in loop.body if isinstance(x, Step) and x.node.op in PRODUCTS)
    return list(dict.fromkeys((s.dst, s.lag) for s in steps))  # type: ignore[misc]


def _read_in_time(loop: LoopStep, results: list[int], places: int) -> bool:
    """Whether each result has left before the product that takes its place is issued, and in its own trip."""
    if len(set(results)) < len(results) or not all(isinstance(x, Step) for x in loop.body):
        return False
    body = [x for x in loop.body if isinstance(x, Step)]
    made = {r: [n for n, s in enumerate(body) if s.dst == r] for r in results}
    read = {r: [n for n, s in enumerate(body) if r in s.srcs and s.dst != r] for r in results}
    lags = {r: {body[n].lag for n in (*made[r], *read[r])} for r in results}
    if any(not read[r] or len(lags[r]) > 1 or min(read[r]) < max(made[r]) for r in results):
        return False
    return all(max(read[r]) < min(made[heir]) for r, heir in zip(results, results[places:], strict=False))
