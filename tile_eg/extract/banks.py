"""Bank groups of UB: operands that one instruction reads start in different halves of a stretch, where room and order allow it.

An instruction that reads two operands out of one group takes twice as long (`chips`, `vector.ops`: slope against free).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from tile_eg.chips import Chip
from tile_eg.extract.schedule import Schedule, Step
from tile_eg.ops.physical import VECTOR
from tile_eg.ops.types import Level


@dataclass(frozen=True)
class Banks:
    """The group in which each storage is to start, of two that take turns every `size` bytes; those in `whole` start one."""

    groups: Mapping[int, int] = field(default_factory=dict)
    size: int = 1
    whole: frozenset[int] = frozenset()

    def at(self, storage: int, address: int) -> int:
        """The first address from `address` on that lies in the storage's group."""
        if storage in self.whole:
            address = -(-address // self.size) * self.size
        group = self.groups.get(storage)
        if group is None or address // self.size % 2 == group:
            return address
        return (address // self.size + 1) * self.size


def banks_of(schedule: Schedule, chip: Chip, in_place: Iterable[tuple[int, int]]) -> Banks:
    """Groups for the storages of UB that are read together; `in_place` are pairs that may take one place, which share a group."""
    kin = _Kin(in_place, apart := _read_together(schedule))
    neighbours: dict[int, set[int]] = {}
    for a, b in apart:
        neighbours.setdefault(kin.of(a), set()).add(kin.of(b))
        neighbours.setdefault(kin.of(b), set()).add(kin.of(a))
    group: dict[int, int] = {}
    for first in sorted(neighbours, key=lambda k: (-len(neighbours[k]), k)):
        queue = [first]
        group.setdefault(first, 0)
        while queue:
            at = queue.pop()
            new = sorted(n for n in neighbours[at] if n not in group)
            group |= dict.fromkeys(new, 1 - group[at])
            queue += new
    found = {s: group[kin.of(s)] for s in schedule.storages if kin.of(s) in group}
    rounds = (i for i, s in schedule.storages.items() if s.level is Level.UB and s.slot_bytes >= chip.vector.repeat_bytes)
    return Banks(found, chip.vector.repeat_bytes, frozenset((*_in_pieces(schedule), *rounds)))


def _apart(step: Step) -> bool:
    """Whether an instruction reads its second operand out of either group, as each piece of the first one asks for."""
    return len(step.srcs) > 1 and "apart" in step.node.payload


def _in_pieces(schedule: Schedule) -> set[int]:
    """What such instructions read: pieces that lie in one group each."""
    return {s for step, _ in schedule.walk() if _apart(step) for s in step.srcs if isinstance(s, int)}


def _read_together(schedule: Schedule) -> list[tuple[int, int]]:
    """Pairs of different storages in UB that an instruction over a tile reads at a time."""
    out: dict[tuple[int, int], None] = {}
    for step, _ in schedule.walk():
        read = sorted({s for s in step.srcs if isinstance(s, int) and schedule.storages[s].level is Level.UB})
        term = VECTOR.get(step.node.op)
        if term and term.banks and not _apart(step):
            out |= dict.fromkeys(combinations(read, 2))
    return list(out)


class _Kin:
    """Storages that may take one place, joined where this puts no two into one group that are read together."""

    def __init__(self, pairs: Iterable[tuple[int, int]], apart: Iterable[tuple[int, int]]) -> None:
        self.head: dict[int, int] = {}
        for a, b in pairs:
            x, y = self.of(a), self.of(b)
            if x != y and not any({self.of(c), self.of(d)} == {x, y} for c, d in apart):
                self.head[max(x, y)] = min(x, y)

    def of(self, storage: int) -> int:
        while storage in self.head:
            storage = self.head[storage]
        return storage
