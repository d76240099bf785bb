"""The order of one trip on a vector core while a skewed loop is full: as few waits for results and for places as can be.

An instruction that needs what another one of V has just made stands behind a barrier, where all results of V are waited for. So
those that need nothing of each other are put side by side, behind one barrier. What a trip loads has one place: a tile that is
used up early is loaded anew while V is at work on the others. Each instruction of V is moved to where a trip takes least, by the
chip's tables, until none is better elsewhere; those of one lag stay together, as they stand under one guard. Where a trip needs
more of UB than there is, an order that needs less comes first: a tile that is made when another one has been read has its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tile_eg.chips import Chip
from tile_eg.extract.pricing import Price
from tile_eg.extract.schedule import Item, LoopStep, Schedule, Step, Storage, StorageId, overwritten
from tile_eg.ir.program import AIV
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.timeline.instruction import cycles

V, LOAD, STORE = "AIV.V", "AIV.MTE2", "AIV.MTE3"
FILLING = 3
"""Trips until each one takes as long as the one before it."""
SWEEPS = 4
"""How often all instructions are tried elsewhere at the most."""
HARDLY = 0.5
"""Cycles that are no gain."""
Places = dict[StorageId, StorageId]


def settle(schedule: Schedule, prices: Sequence[Price], chip: Chip) -> None:
    """Orders what a vector core does in each trip of a schedule's skewed loops, in place. `prices` are those of all nodes."""
    schedule.top = [_settled(schedule, item, prices, chip) for item in schedule.top]


def _settled(schedule: Schedule, item: Item, prices: Sequence[Price], chip: Chip) -> Item:
    if not isinstance(item, LoopStep):
        return item
    body = [x for x in item.body if isinstance(x, Step)]
    if not item.skew or len(body) < len(item.body):
        return replace(item, body=[_settled(schedule, x, prices, chip) for x in item.body])
    if not by_vectors(item):
        return item
    timed = [_timed(s, prices, chip) for s in body]
    return replace(item, body=list(Trip(timed, schedule.storages, chip.sync.flag, chip.level_bytes(Level.UB)).ordered()))


def by_vectors(loop: LoopStep) -> bool:
    """Whether a vector core takes longer for a trip than the products do: then it is its own order that counts."""
    busy = {pipe: sum(s.cycles for s in loop.body if isinstance(s, Step) and s.pipe == pipe) for pipe in (V, "AIC.M")}
    return busy[V] > busy["AIC.M"]


@record
class Timed:
    """A step with its cycles: `busy` on its pipe, and `fill` from there until its result is there."""

    step: Step
    busy: float
    fill: float
    reads: frozenset[StorageId]
    writes: frozenset[StorageId]

    def follows(self, other: Timed) -> bool:
        """Whether it has to stay behind an earlier one."""
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


def _timed(step: Step, prices: Sequence[Price], chip: Chip) -> Timed:
    """A step of a vector core with the cycles of the chip's tables, and of a mask as much as is made in a trip."""
    works = prices[step.node.index].works if step.core == AIV else ()
    warm, cold = (sum(n * cycles(chip, w, cold=c) for w, n in works) for c in (False, True))
    scratch = set() if step.scratch is None else {step.scratch}
    part = min(1.0, prices[step.node.index].total / max(1.0, cold)) if step.pipe == V else 1.0
    return Timed(step, part * warm, part * (cold - warm), frozenset(step.srcs), frozenset({step.dst, *scratch}))


class Trip:
    """The steps of one trip. An order is a list of their numbers, which are their places in the order that is there."""

    def __init__(self, steps: Sequence[Timed], storages: dict[int, Storage], flag: float, room: int) -> None:
        """`flag` is how long a flag takes, `room` the bytes of UB."""
        self.steps, self.storages, self.flag, self.room = steps, storages, flag, room
        self.before = [{i for i in range(j) if t.follows(steps[i])} for j, t in enumerate(steps)]

    def ordered(self) -> Iterator[Step]:
        """The steps in the order in which a trip takes least."""
        order, tried = list(range(len(self.steps))), list[int]()
        for _ in range(SWEEPS):
            if order == tried:
                break
            tried, order = order, self._swept(order)
        return (self.steps[i].step for i in order)

    def _swept(self, order: list[int]) -> list[int]:
        """Each step of V where the trip takes least, one after the other."""
        best = self._judged(order)
        for i in [i for i in order if self.steps[i].step.pipe == V]:
            for found in self._elsewhere(order, i):
                judged = self._judged(found)
                if judged < (best[0], best[1] - HARDLY):
                    order, best = found, judged
        return order

    def _judged(self, order: Sequence[int]) -> tuple[int, float]:
        """What is better of two orders: the bytes that it needs beyond UB, then its cycles."""
        own = [self.steps[i] for i in order if self.steps[i].step.core == AIV]
        return max(0, self._bytes(own, self._places(own)) - self.room), self.cycles(order)

    def _bytes(self, own: Sequence[Timed], places: Places) -> int:
        """About what the steps need of UB at a time: all that another pipe or trip meets, and what V keeps for itself."""
        first, last = dict[int, int](), dict[int, int]()
        kept = {i for i in places.values() if isinstance(i, int)}
        for at, t in enumerate(own):
            ids = {i for i in t.reads | t.writes if isinstance(i, int) and self.storages[i].level is Level.UB and i not in places}
            kept |= {i for i in ids if t.step.pipe != V or self.storages[i].slots > 1}
            first = dict.fromkeys(ids, at) | first
            last |= dict.fromkeys(ids, at)
        held = [0] * len(own)
        for i in first.keys() - kept:
            for at in range(first[i], last[i] + 1):
                held[at] += self.storages[i].bytes
        return sum(self.storages[i].bytes for i in kept if self.storages[i].level is Level.UB) + max(held, default=0)

    def _elsewhere(self, order: list[int], i: int) -> list[list[int]]:
        """The orders with one step elsewhere among those of its lag, and with it the stores of what it makes."""
        moved = [i, *(j for j in order if self.steps[j].step.pipe == STORE and max(self.before[j], default=-1) == i)]
        at, rest = order.index(i), [j for j in order if j not in moved]
        low, high = at, at
        while low and self._may_pass(rest[low - 1], moved):
            low -= 1
        while high < len(rest) and self._may_pass(rest[high], moved):
            high += 1
        return [[*rest[:p], *moved, *rest[p:]] for p in range(low, high + 1) if p != at]

    def _may_pass(self, other: int, moved: Sequence[int]) -> bool:
        """Whether another step may stand on the other side of some."""
        alike = self.steps[other].step.lag == self.steps[moved[0]].step.lag
        return alike and not any(other in self.before[j] or j in self.before[other] for j in moved)

    def cycles(self, order: Sequence[int]) -> float:
        """Of one trip on a vector core, once the loop is full."""
        own = [self.steps[i] for i in order if self.steps[i].step.core == AIV]
        line, ends = _Line(self._places(own), self.flag), list[float]()
        for _ in range(2 * FILLING):
            for timed in own:
                line.take(timed)
            ends.append(line.free.get(V, 0.0))
        return (ends[-1] - ends[FILLING - 1]) / FILLING

    def _places(self, own: Sequence[Timed]) -> Places:
        """By storage the load, or what goes round, in whose place it lies: a step of V may write where it reads last."""
        last, made = {s: t for t in own for s in t.reads}, {s for t in own for s in t.writes}
        out, met = Places(), set[StorageId]()
        for t in own:
            out |= {s: s for s in t.reads & made - met if isinstance(s, int)}
            if t.step.pipe == LOAD:
                out[t.step.dst] = t.step.dst
            elif t.step.dst not in met:
                ended = (s for s in overwritten(t.step.node, t.step.srcs) if s in out and last[s] is t)
                out |= ((t.step.dst, out[s]) for s in ended if self._alike(s, t.step.dst))
            met |= t.reads | t.writes
        return out

    def _alike(self, *ids: StorageId) -> bool:
        found = [self.storages[i] for i in ids if isinstance(i, int)]
        return len(set(ids)) == len(found) and len({(s.slots, s.slot_bytes, s.dtype) for s in found}) == 1 and found[0].slots == 1


class _Line:
    """The pipes of a vector core in time, in cycles: when each is free, when each result is there, when each place was left."""

    def __init__(self, places: Places, flag: float) -> None:
        self.places, self.flag = places, flag
        self.free: dict[str, float] = {}
        self.there: dict[StorageId, float] = {}
        self.left: dict[StorageId, float] = {}
        self.drained = 0.0
        self.read, self.written = set[StorageId](), set[StorageId]()
        """What V has read and written since its last barrier."""

    def take(self, timed: Timed) -> None:
        """One step more."""
        pipe = timed.step.pipe
        waits = self._barrier(timed) if pipe == V else self.left.get(timed.step.dst, 0.0) + self.flag
        known = self.written if pipe == V else frozenset[StorageId]()
        results = (self.there[s] for s in timed.reads if s in self.there and s not in known)
        self.free[pipe] = max(self.free.get(pipe, 0.0), waits, *results) + timed.busy
        there = self.free[pipe] + timed.fill
        self.there |= dict.fromkeys(timed.writes, there + (self.flag if pipe != V else 0.0))
        if pipe == V:
            self.drained = max(self.drained, there)
            self.left |= {self.places[s]: there for s in timed.reads | timed.writes if s in self.places}

    def _barrier(self, timed: Timed) -> float:
        """From when on an instruction of V may start: behind all before it where it needs one of them."""
        meet = timed.reads & self.written or timed.writes & (self.read | self.written)
        if meet:
            self.read, self.written = set(), set()
        self.read |= timed.reads
        self.written |= timed.writes
        return self.drained if meet else 0.0
