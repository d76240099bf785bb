"""What of a text's reads and writes crosses HBM, as it ran: L2 with its room, byte by byte, in the order of the cores.

All blocks of a wave go in step: the first copy of each from GM, then the second one of each. What was touched last is kept, up to
`Chip.l2_reach`. A byte that is read comes from HBM where L2 does not have it. What is written stays, up to `Chip.l2_written`,
until other lines push it out: this is what HBM writes. What is left when a launch ends stays for the next one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

import numpy as np

from tile_eg.ir.program import AIC
from tile_eg.ops.records import record
from tile_eg.timeline.replay.row import Row

SYNC_ALL = "SyncAll"
MOST_GRAINS = 1 << 28  # of one tensor: larger ones are followed in coarser grains; memory is taken where a copy touches it
STRETCH = 1 << 22  # grains that are looked at together
Where = tuple[str, int, int]  # tensor, line of the text, phase
Read = tuple[int, int, bool, str, int]  # phase, turn, whether a cube core reads, tensor, offset


def in_gm(row: Row) -> bool:
    """Whether it copies from or to GM."""
    return row.path.startswith("GM->") or row.path.endswith("->GM")


def meets(row: Row) -> bool:
    """Whether all cores of all blocks meet there."""
    return row.name == SYNC_ALL or (row.name.startswith("CrossCoreWaitFlag") and row.sizes[0] == 0)


class Turns:
    """Counts along the rows of one core: `phase` is how often all cores have met; since then, `turn` are the copies from and to
    GM, and `moved` their bytes."""

    def __init__(self) -> None:
        self.phase, self.turn, self.moved = 0, 0, 0

    def after(self, row: Row) -> None:
        """Goes on behind a row."""
        if meets(row):
            self.phase, self.turn, self.moved = self.phase + 1, 0, 0
        elif in_gm(row):
            self.turn, self.moved = self.turn + 1, self.moved + row.bytes


class Working:
    """How many of the blocks side by side copy at a time: those whose core has not moved all its bytes yet when another one has
    come as far. Where blocks come in waves it is a mean: one that is done makes room for the next."""

    def __init__(self, moved: Mapping[tuple[int, str], Mapping[int, int]], at_once: int) -> None:
        """The bytes that each block's core moves, by phase and core."""
        self.side_by_side = {key: sorted(n for block, n in each.items() if block < at_once) for key, each in moved.items()}
        self.in_waves = any(block >= at_once for each in moved.values() for block in each)

    def at(self, core: str, at: Turns) -> float:
        each = self.side_by_side.get((at.phase, core), [])
        if not each:
            return 1.0
        return sum(each) / max(1, each[-1]) if self.in_waves else float(len(each) - bisect_right(each, at.moved))


@record
class Traffic:
    """What one launch moves: the share of each place's reads that comes from HBM, and HBM's bytes (read, written) by phase.

    A phase lies between two meetings of all cores. `sharing` says how many of the cores that start together read one place at the
    same turn, where they are several, as long as they have stored no result; `working` says how many blocks copy at a time.
    """

    missed: Mapping[Where, float]
    hbm: Sequence[tuple[float, float]]
    sharing: Mapping[Read, int]
    working: Working

    def miss(self, row: Row, at: Turns) -> float:
        """The share of a row's bytes that comes from HBM."""
        return self.missed.get((row.tensor, row.line, at.phase), 0.0)

    def readers(self, row: Row, at: Turns) -> int:
        """How many cores read what the row reads at the same time."""
        return self.sharing.get(_read_of(row, at), 1)

    def at_work(self, row: Row, at: Turns) -> float:
        """How many blocks copy at the time of a row."""
        return self.working.at(row.core, at)


def _read_of(row: Row, at: Turns) -> Read:
    return at.phase, at.turn, row.core == AIC, row.tensor, row.offset


@dataclass
class _Held:
    """What L2 holds, by the number of the touch that was its last: the oldest is dropped first."""

    capacity: int
    bytes: int = 0
    oldest: int = 1
    counts: list[int] = field(default_factory=lambda: [0])

    def touch(self, last: np.ndarray, grain: int) -> np.ndarray:
        """Which of these grains, by their last touches, are there; from now on all of them are."""
        there = last >= self.oldest
        for number, times in _counts(last[there]):
            self.counts[number] -= times * grain
        self.counts.append(last.size * grain)
        self.bytes += (last.size - int(np.count_nonzero(there))) * grain
        while self.bytes > self.capacity and self.oldest < self.now:
            self.bytes -= self.counts[self.oldest]
            self.oldest += 1
        return there

    @property
    def now(self) -> int:
        return len(self.counts) - 1


def _counts(numbers: np.ndarray) -> Iterable[tuple[int, int]]:
    if not numbers.size:
        return ()
    low = int(numbers.min())
    if low == numbers.max():
        return ((low, numbers.size),)
    return zip(*(x.tolist() for x in np.unique(numbers, return_counts=True)), strict=True)


class _Tensor:
    """The grains of a tensor: when each was touched last (0: never), and which HBM does not have yet (`phase`: since when).

    A grain is the largest piece that no copy cuts, where the tensor is not too large for that.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        boxes = [_box(row) for row in rows]
        end = max(at + (n - 1) * stride + length for at, n, length, stride in boxes)
        self.grain = gcd(*(x for at, n, length, stride in boxes for x in (at, length, stride if n > 1 else 0)))
        while end // self.grain > MOST_GRAINS:
            self.grain *= 2
        size = end // self.grain + 2
        self.last = np.zeros(size, np.int32)
        writes = any(row.path.endswith("->GM") for row in rows)
        self.dirty = np.zeros(size, bool) if writes else None
        self.phase = np.zeros(size, np.int16) if writes else None
        self.shapes: dict[tuple[int, int, int], np.ndarray] = {}

    def at(self, row: Row) -> np.ndarray | slice:
        """The grains of a copy. Both ends of a run are rounded down, so that runs side by side share none."""
        at, n, length, stride = _box(row)
        if n == 1:
            first = at // self.grain
            return slice(first, max(first + 1, (at + length) // self.grain))
        if stride % self.grain:
            return self._grains(at, n, length, stride)
        if (n, length, stride) not in self.shapes:
            self.shapes[n, length, stride] = self._grains(0, n, length, stride)
        return self.shapes[n, length, stride] + at // self.grain

    def _grains(self, at: int, n: int, length: int, stride: int) -> np.ndarray:
        starts = (at + np.arange(n) * stride) // self.grain
        grains = (starts[:, None] + np.arange(max(1, length // self.grain))).ravel()
        return grains if stride >= length and stride >= self.grain else np.unique(grains)


def _box(row: Row) -> tuple[int, int, int, int]:
    """Where a copy lies in its tensor, in bytes: the first one, rows, bytes of a row, bytes from row to row."""
    n, length, stride, _ = row.sizes
    if n * length != row.bytes or n < 1 or stride < 0:
        return row.offset, 1, row.bytes, row.bytes
    return (row.offset, 1, n * length, n * length) if n == 1 or stride == length else (row.offset, n, length, stride)


class _Order:
    """The copies of a launch, with their phases, in the order in which the cores come to them; and what `Traffic` says of them.

    Within a block the order is that of the trace, in which no read stands before the write that it waits for.
    """

    def __init__(self, rows: Sequence[Row], at_once: int) -> None:
        cores: defaultdict[tuple[int, str], Turns] = defaultdict(Turns)
        turns: defaultdict[tuple[int, int], int] = defaultdict(int)
        moved: defaultdict[tuple[int, str], defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        readers: defaultdict[Read, set[tuple[int, str]]] = defaultdict(set)
        found: list[tuple[tuple[int, int, int, int], Row]] = []
        results, apart = _results(rows), set[tuple[int, int]]()
        for row in rows:
            at = cores[row.block, row.core]
            if in_gm(row) and row.bytes > 0:
                found.append(((row.block // at_once, at.phase, turns[row.block, at.phase], row.block), row))
                turns[row.block, at.phase] += 1
                moved[at.phase, row.core][row.block] += row.bytes
                if row.tensor in results:
                    apart.add((row.block, at.phase))
                if row.path.startswith("GM->") and row.block < at_once and (row.block, at.phase) not in apart:
                    readers[_read_of(row, at)].add((row.block, row.core))
            at.after(row)
        found.sort(key=lambda item: item[0])
        self.copies = [(key[1], row) for key, row in found]
        self.sharing = {read: len(them) for read, them in readers.items() if len(them) > 1}
        self.working = Working(moved, at_once)
        self.phases = 1 + max((at.phase for at in cores.values()), default=0)


def _results(rows: Sequence[Row]) -> set[str]:
    """The tensors that are written and not read: what blocks store there are their results."""
    return {r.tensor for r in rows if r.path.endswith("->GM")} - {r.tensor for r in rows if r.path.startswith("GM->")}


class L2:
    """Follows the launches of a run, one after the other: what one wrote the next one may find."""

    def __init__(self, rows: Sequence[Row], capacity: int, written: int) -> None:
        """What is read is found again within `capacity` bytes, what is written stays within `written`."""
        by_tensor: dict[str, list[Row]] = {}
        for row in rows:
            if in_gm(row) and row.bytes > 0:
                by_tensor.setdefault(row.tensor, []).append(row)
        self.tensors = {name: _Tensor(found) for name, found in by_tensor.items()}
        self.held, self.kept = _Held(capacity), _Held(written)

    def launch(self, rows: Sequence[Row], at_once: int) -> Traffic:
        """The rows of one launch, of which so many blocks run side by side."""
        order = _Order(rows, at_once)
        moved: list[list[float]] = [[0.0, 0.0] for _ in range(order.phases)]
        read: defaultdict[Where, float] = defaultdict(float)
        missed: defaultdict[Where, float] = defaultdict(float)
        for phase, row in order.copies:
            if row.past_l2:
                writes = row.path.endswith("->GM")
                moved[phase][writes] += row.bytes
                place = row.tensor, row.line, phase
                read[place], missed[place] = read[place] + row.bytes, missed[place] + row.bytes
                continue
            if row.path.endswith("->GM"):
                self._write(row, phase, moved)
                continue
            new = self._read(row, moved)
            moved[phase][0] += new
            place = row.tensor, row.line, phase
            read[place] += row.bytes
            missed[place] += new
        self._end(moved)
        shares = {place: min(1.0, missed[place] / n) for place, n in read.items()}
        return Traffic(shares, [(r, w) for r, w in moved], order.sharing, order.working)

    def _read(self, row: Row, moved: list[list[float]]) -> float:
        """The bytes of it that come from HBM."""
        t = self.tensors[row.tensor]
        at = t.at(row)
        there, kept = (held.touch(t.last[at], t.grain) for held in (self.held, self.kept))
        if t.dirty is not None:
            self._pushed(t, at, kept, moved)
            t.dirty[at] &= kept
            there |= t.dirty[at]
        t.last[at] = self.held.now
        return float(there.size - np.count_nonzero(there)) * max(t.grain, row.bytes / there.size)

    def _write(self, row: Row, phase: int, moved: list[list[float]]) -> None:
        t = self.tensors[row.tensor]
        at = t.at(row)
        self.held.touch(t.last[at], t.grain)
        assert t.dirty is not None and t.phase is not None
        self._pushed(t, at, self.kept.touch(t.last[at], t.grain), moved)
        t.dirty[at] = True
        t.phase[at] = phase
        t.last[at] = self.held.now

    @staticmethod
    def _pushed(t: _Tensor, at: np.ndarray | slice, kept: np.ndarray, moved: list[list[float]]) -> None:
        """What L2 has pushed out to make room, of what is touched now."""
        assert t.dirty is not None and t.phase is not None
        gone = t.dirty[at] & ~kept
        if gone.any():
            for phase, times in _counts(t.phase[at][gone]):
                moved[phase][1] += times * t.grain

    def _end(self, moved: list[list[float]]) -> None:
        """Counts what was pushed out and not touched again, and forgets what was only read."""
        for t in self.tensors.values():
            for begin in range(0, t.last.size, STRETCH):
                self._end_stretch(t, slice(begin, begin + STRETCH), moved)

    def _end_stretch(self, t: _Tensor, at: slice, moved: list[list[float]]) -> None:
        last = t.last[at]
        if not last.any():
            return
        if t.dirty is None or t.phase is None:
            last[:] = 0
            return
        dirty = t.dirty[at]
        gone = last < self.kept.oldest
        for phase, times in _counts(t.phase[at][dirty & gone]):
            moved[phase][1] += times * t.grain
        dirty[gone] = False
        last[~dirty] = 0
        t.phase[at] = 0
