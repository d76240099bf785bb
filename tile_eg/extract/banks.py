"""Bank groups of UB: operands that one instruction reads start in different halves of a stretch, where room and order allow it.

An instruction that reads two operands out of one group takes twice as long (`chips`, `vector.ops`: slope against free). One that
writes to the banks from which it reads a block for each row waits as well (`read_write`): these lie in another part of UB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import combinations
from math import prod

from tile_eg.chips import Chip
from tile_eg.extract.schedule import Schedule, Step, Storage
from tile_eg.ir.machine import BANK_BYTES
from tile_eg.ir.program import BY_BLOCKS
from tile_eg.ir.sharing import Itself, once
from tile_eg.ops.physical import VECTOR
from tile_eg.ops.records import record
from tile_eg.ops.types import Level


@record
class Banks:
    """The group in which each storage is to start, of two that take turns every `size` bytes; those in `whole` start one.

    `results` are the cycles of instructions that read a storage as a block for each row, by storage and what they write: the less
    of these a block has in its own part of UB, the better.
    """

    groups: Mapping[int, int] = field(default_factory=dict)
    size: int = 1
    whole: frozenset[int] = frozenset()
    results: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

    def at(self, storage: int, address: int) -> int:
        """The first address from `address` on that lies in the storage's group."""
        if storage in self.whole:
            address = -(-address // self.size) * self.size
        group = self.groups.get(storage)
        if group is None or address // self.size % 2 == group:
            return address
        return (address // self.size + 1) * self.size

    def in_the_way(self, blocks: int, address: int, spans: Mapping[int, tuple[int, int]]) -> float:
        """Cycles in which results lie in the part of UB of blocks at an address; `spans` are where storages begin and end."""
        low = address // BANK_BYTES * BANK_BYTES
        found = ((cycles, *spans[result]) for result, cycles in self.results[blocks].items() if result in spans)
        return sum(c * max(0, min(end, low + BANK_BYTES) - max(at, low)) / (end - at) for c, at, end in found)

    def waits(self, places: Mapping[int, int], storages: Mapping[int, Storage]) -> float:
        """As `in_the_way`, of all blocks at their places."""
        spans = {sid: (at, at + storages[sid].bytes) for sid, at in places.items()} if self.results else {}
        return sum(self.in_the_way(blocks, places[blocks], spans) for blocks in self.results if blocks in places)


def banks_of(schedule: Schedule, chip: Chip, in_place: Iterable[tuple[int, int]]) -> list[Banks]:
    """Groups for the storages of UB that are read together, the best first; `in_place` are pairs that may take one place.

    Such a pair shares a group where that lets all others lie apart. Where it does not, what is read together lies apart first,
    which takes more room, and else what may take one place shares a group first.
    """
    (apart, pieces, results), pairs = once("banks", Itself(schedule.top), lambda: _asked(schedule)), list(in_place)
    close, at_odds = _grouped(pairs, list(apart), roomy=False)
    ways = [_grouped(pairs, sorted(apart, key=lambda p: -apart[p]), roomy=True)[0], close] if at_odds else [close]
    rounds = (i for i, s in schedule.storages.items() if s.level is Level.UB and s.slot_bytes >= chip.vector.repeat_bytes)
    whole, counted = frozenset((*pieces, *rounds)), results if chip.vector.read_write else {}
    return [Banks(groups, chip.vector.repeat_bytes, whole, counted) for groups in ways]


def _asked(schedule: Schedule) -> tuple[dict[tuple[int, int], int], set[int], dict[int, dict[int, int]]]:
    """What the instructions of a schedule ask of the banks, whatever slots its storages have."""
    return _read_together(schedule), _in_pieces(schedule), _results(schedule)


def _grouped(pairs: list[tuple[int, int]], apart: list[tuple[int, int]], *, roomy: bool) -> tuple[dict[int, int], bool]:
    """Groups by storage, and whether two share one that are read together."""
    sides = _Sides()
    for a, b in apart if roomy else ():
        sides.join(a, b, True)
    _join_in_place(sides, pairs, apart)
    for a, b in apart:
        sides.join(a, b, True)
    meets: dict[int, set[int]] = {}
    for a, b in apart:
        meets.setdefault(a, set()).add(b)
        meets.setdefault(b, set()).add(a)
    first: dict[int, int] = {}
    for s in sorted(meets, key=lambda s: (-len(meets[s]), s)):
        head, side = sides.of(s)
        first.setdefault(head, side)
    known = {s: sides.of(s) for s in {*meets, *(s for p in pairs for s in p)}}
    groups = {s: int(side != first[head]) for s, (head, side) in sorted(known.items()) if head in first}
    return groups, any(groups[a] == groups[b] for a, b in apart)


def _join_in_place(sides: _Sides, pairs: Iterable[tuple[int, int]], apart: Iterable[tuple[int, int]]) -> None:
    """Lets each of the pairs share a group, unless some are read together that stand to each other as these two do."""
    beside: dict[int, set[int]] = {}  # the heads of what is read together with what has a head
    for a, b in apart:
        x, y = sides.of(a)[0], sides.of(b)[0]
        if x != y:
            beside.setdefault(x, set()).add(y)
            beside.setdefault(y, set()).add(x)
    for a, b in pairs:
        x, y = sorted((sides.of(a)[0], sides.of(b)[0]))
        if x != y and y not in beside.get(x, ()):
            sides.join(a, b, False)
            for other in (moved := beside.pop(y, set())):
                beside[other] = beside[other] - {y} | {x}
            beside[x] = beside.get(x, set()) | moved


def _apart(step: Step) -> bool:
    """Whether an instruction reads its second operand out of either group, as each piece of the first one asks for."""
    return len(step.srcs) > 1 and "apart" in step.node.payload


def _in_pieces(schedule: Schedule) -> set[int]:
    """What such instructions read: pieces that lie in one group each."""
    return {s for step, _ in schedule.walk() if _apart(step) for s in step.srcs if isinstance(s, int)}


def _results(schedule: Schedule) -> dict[int, dict[int, int]]:
    """What `Banks.results` says of a schedule."""
    out: dict[int, dict[int, int]] = {}
    for step, around in schedule.walk():
        term = VECTOR.get(step.node.op)
        if term and len(step.srcs) > 1 and term.instruction(step.node.payload).endswith(BY_BLOCKS):
            blocks, result = step.srcs[1], step.dst
            if isinstance(blocks, int) and isinstance(result, int):
                written = out.setdefault(blocks, {})
                written[result] = written.get(result, 0) + step.cycles * prod(loop.trips for loop in around)
    return out


def _read_together(schedule: Schedule) -> dict[tuple[int, int], int]:
    """Pairs of different storages in UB that an instruction over a tile reads at a time, with the cycles of those in a block."""
    out: dict[tuple[int, int], int] = {}
    for step, around in schedule.walk():
        read = sorted({s for s in step.srcs if isinstance(s, int) and schedule.storages[s].level is Level.UB})
        term = VECTOR.get(step.node.op)
        if term and term.banks and not _apart(step):
            for pair in combinations(read, 2):
                out[pair] = out.get(pair, 0) + step.cycles * prod(loop.trips for loop in around)
    return out


class _Sides:
    """Storages of which it is known whether they lie in one group or in different ones: by the first of them, and a side each."""

    def __init__(self) -> None:
        self.head: dict[int, tuple[int, bool]] = {}

    def of(self, storage: int) -> tuple[int, bool]:
        if storage not in self.head:
            return storage, False
        above, odd = self.head[storage]
        if above in self.head:
            first, side = self.of(above)
            self.head[storage] = first, side ^ odd
        return self.head[storage]

    def join(self, a: int, b: int, odd: bool) -> None:
        """Lets two lie apart (`odd`), or together, unless more is known of them already."""
        (x, one), (y, other) = self.of(a), self.of(b)
        if x != y:
            self.head[max(x, y)] = min(x, y), one ^ other ^ odd
