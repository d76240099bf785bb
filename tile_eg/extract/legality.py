"""Is an ordered schedule right? It is run with version tags for numbers: every read must find the tag that it names.

This is exact for clobbering, and the one home of what is judged on a whole schedule: storage cells here, capacity in `memory`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Union

from tile_eg.egraph import Node
from tile_eg.extract.accumulators import check_accumulators
from tile_eg.extract.base import Refused
from tile_eg.extract.schedule import Item, LoopStep, Schedule, Step, StorageId, overwritten
from tile_eg.extract.selection import Selection, gone_before, is_half, tensor_of, touches_whole
from tile_eg.ops.physical import IN_PARTS, OVERWRITES, STORES, TOUCHES, VECTOR

TRIPS = 3  # enough for a first, a middle and a last trip
Tag = Union[tuple[int, tuple[tuple[int, int], ...]], tuple[str, str], None]
Trip = dict[int, int]


class _Run:
    """One abstract execution: what tag each slot of each storage holds. Loops that the block counts take `counted` trips."""

    def __init__(self, schedule: Schedule, chosen: Selection, counted: int = TRIPS) -> None:
        self.schedule, self.chosen, self.graph, self.counted = schedule, chosen, schedule.graph, counted
        self.memory: dict[tuple[StorageId, int], Tag] = {}
        self.deepest = max((loop.skew for _, around in schedule.walk() for loop in around), default=0)
        self.last: Trip = {}
        for step, around in schedule.walk():
            for loop in around:
                self.last[loop.loop] = self._trips(loop) - 1
            for s in (step.dst, *step.srcs):
                if isinstance(s, str):
                    self.memory[s, 0] = ("gm", s)

    def _trips(self, loop: LoopStep) -> int:
        if self.counted < TRIPS and loop.loop in self.graph.values.counts:
            return self.counted
        return min(loop.trips, TRIPS + self.deepest)  # one that reads what an earlier one loaded takes no trip that this did not

    def steps(self, items: list[Item], trip: Trip) -> Iterator[tuple[Step, Trip]]:
        """Every step as it runs, with the trip of each loop that it belongs to (its own lag taken off)."""
        for item in items:
            if isinstance(item, Step):
                yield item, trip
                continue
            n = self._trips(item)
            for t in range(n + item.skew):
                for inner in item.body:
                    if isinstance(inner, LoopStep):
                        yield from self.steps([inner], {**trip, item.loop: t})
                    elif 0 <= t - inner.lag < n:
                        yield inner, {**trip, item.loop: t - inner.lag}

    def slot(self, sid: StorageId, trip: Trip) -> tuple[StorageId, int]:
        storage = self.schedule.storages[sid] if isinstance(sid, int) else None
        return sid, trip[storage.ring] % storage.slots if storage and storage.ring in trip and storage.ring is not None else 0

    def _visible(self, region: int, trip: Trip) -> Trip:
        inside = self.graph.ancestors(region)
        return {r: t for r, t in trip.items() if r in inside}

    def tag(self, cls: int, trip: Trip) -> Tag:
        """The tag of the value that `cls` stands for, as of `trip`."""
        node = self.chosen.pick[self.chosen.base(cls)]
        if node.op == "GM0":
            return "gm", node.payload[0]
        if node.op in ("PArg", "PTArg"):
            loop, k = node.payload[:2]
            around = self.graph.parents[loop]
            if trip[loop] == 0:
                return self.tag(self._first(node.op, loop, k), self._visible(around, trip))
            return self.tag(self._next(node.op, loop, k), {**trip, loop: trip[loop] - 1})
        if node.op in ("PProj", "PTProj"):
            loop, k = node.payload[:2]
            trip = self._visible(self.graph.parents[loop], trip)
            if self.last.get(loop, -1) < 0:
                return self.tag(self._first(node.op, loop, k), trip)
            return self.tag(self._next(node.op, loop, k), {**trip, loop: self.last[loop]})
        return node.cls, tuple(sorted(self._visible(node.region, trip).items()))

    def _state(self, op: str, loop: int, k: int) -> tuple[int, int]:
        if op in ("PArg", "PProj"):
            return self.chosen.states[loop, k].children  # type: ignore[return-value]
        return self.chosen.tensor_states[loop][k].children[:2]  # type: ignore[return-value]

    def _first(self, op: str, loop: int, k: int) -> int:
        return self._state(op, loop, k)[0]

    def _next(self, op: str, loop: int, k: int) -> int:
        cls = self._state(op, loop, k)[1]
        return self.chosen.pick[cls].children[0] if self.chosen.pick[cls].op == "NextCp" else cls

    def run(self) -> None:
        for step, trip in self.steps(self.schedule.top, {}):
            sources = zip(step.srcs, step.versions, self._sources(step), strict=True)
            tags = [self._read(step, s, c, self._loaded_in(of, trip)) for s, c, of in sources]
            if step.node.op in IN_PARTS:
                self._check_window(step)
            elif step.node.op in VECTOR and not step.back_edge:
                self._check_in_place(step)
            made: Tag = step.node.cls, tuple(sorted(self._visible(step.region, trip).items()))
            copies = step.back_edge or step.node.op == "VCopy"
            self.memory[self.slot(step.dst, trip)] = tags[0] if step.back_edge and copies else made
        self._outputs()

    def _check_window(self, step: Step) -> None:
        """A window of a tile is not computed from what it overlaps with: some of that would be gone before it is read."""
        for sid, cls in zip(step.srcs[: OVERWRITES.get(step.node.op)], step.node.children, strict=False):
            if sid == step.dst and gone_before(self.graph, step.node, self.chosen.chain(cls)[:-1]):
                raise Refused("clobber", f"{step.node.op} reads beside the window that it writes", self._sharing(sid, step))

    def _check_in_place(self, step: Step) -> None:
        """A result does not lie where the instruction still reads: a state of a loop is made in its own place, too."""
        if step.node.op not in OVERWRITES and step.dst in step.srcs and step.dst not in overwritten(step.node, step.srcs):
            what = f"{step.node.op} writes over what it reads"
            raise Refused("clobber", what, self._sharing(step.dst, step))  # type: ignore[arg-type]

    def _sources(self, step: Step) -> list[int]:
        return [step.node.children[0]] if step.back_edge else self.chosen.sources(step.node)

    def _loaded_in(self, cls: int, trip: Trip) -> Trip:
        """The trip of an earlier loop whose tile is read in this one."""
        stays = self.chosen.stays(cls)
        return {**trip, stays[1]: trip[stays[0]]} if stays else trip

    def _read(self, step: Step, sid: StorageId, cls: int, trip: Trip) -> Tag:
        wanted, found = self.tag(cls, trip), self.memory.get(self.slot(sid, trip))
        if found is None:
            raise AssertionError(f"{step.node.op} reads storage {sid} of {self._label(wanted)}, which nothing wrote")
        if found != wanted:
            what = f"{step.node.op} finds {self._label(found)} where it needs {self._label(wanted)}"
            raise Refused("clobber", what, self._sharing(sid, step))
        return wanted

    def _sharing(self, sid: StorageId, step: Step) -> list[Node]:
        """What makes values share a storage, and who reads it: no choice with all of these is right."""
        cells = self.chosen.cells
        roots = {cells.find(s.node.cls) for s, _ in self.schedule.walk() if s.dst == sid and not s.back_edge}
        return [n for n in self.chosen.nodes if n is step.node or cells.find(n.cls) in roots or self._state_of(n) & roots]

    def _state_of(self, node: Node) -> set[object]:
        return {self.chosen.cells.find(("cell", *node.payload[:2]))} if node.op in ("State", "NextIn", "NextCp") else set()

    def _label(self, tag: Tag) -> str:
        if tag is None or isinstance(tag[0], str):
            return str(tag)
        return f"{self.chosen.pick[tag[0]].op}{dict(tag[1]) or ''}"  # type: ignore[arg-type]

    def _outputs(self) -> None:
        node = self.chosen.pick[self.graph.root]
        while node.op == "OCons":
            cls = node.children[0]
            name = self.chosen.cells.tensor[self.chosen.cells.find(self.chosen.base(cls))]
            if self.memory.get((name, 0)) != self.tag(cls, {}):
                raise Refused("clobber", f"{name} does not end at its last version")
            node = self.chosen.pick[node.children[1]]


def _tensors(chosen: Selection) -> None:
    """No flag orders accesses to a tensor on two cores: see `Model`, which keeps the same law."""
    touching = [n for n in chosen.nodes if n.op in TOUCHES]
    for store, other in product([n for n in touching if n.op in STORES], touching):
        if tensor_of(other) == tensor_of(store) and TOUCHES[other.op] != TOUCHES[store.op]:
            raise Refused("meeting", f"cube and vector cores touch {tensor_of(store)}, which one stores to", (store, other))
    half = next((n for n in chosen.nodes if is_half(chosen.graph, n)), None)
    whole = next((n for n in touching if touches_whole(chosen.graph, n)), None)
    if half and whole:
        raise Refused("meeting", f"both vector cores touch all of {tensor_of(whole)}", (half, whole))


def _empty(chosen: Selection) -> None:
    """An accumulator in L0C is zeroed by the first product that it gets: a loop that takes no trip would leave it as it was."""
    values = chosen.graph.values
    for (loop, _), state in chosen.states.items():
        first = chosen.pick[chosen.base(state.children[0])]
        if loop in values.counts and not values.fewest[loop] and first.op == "ZeroL0C":
            raise Refused("empty", f"loop {values.variables[loop]} may take no trip and begins in L0C", (state, first))


def check(schedule: Schedule, chosen: Selection) -> None:
    """Refused where some read finds another value than it names; an AssertionError where it finds none at all."""
    _tensors(chosen)
    _empty(chosen)
    check_accumulators(chosen)
    values = chosen.graph.values
    for counted in range(min(values.fewest[loop] for loop in values.counts), TRIPS) if values.counts else ():
        _Run(schedule, chosen, counted).run()
    _Run(schedule, chosen).run()
