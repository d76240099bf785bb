"""L2 as a program goes along: windows of tensors that the cores touch side by side, of which L2 keeps those touched last.

L2 forgets what was used longest ago, as the public measurements of repeated copies show: no hits at 302 MB, all of them at 75 MB.
`Chip.l2_reach` is how much it keeps.
The outer loops are gone through trip by trip, with all blocks in step; what an access touches in the loops further inside is one
window, named by where it starts; where windows overlap, as those of a sliding window do, it is one for each trip.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from tile_eg.chips import Chip
from tile_eg.ir.index import BLOCK, EACH, SUB, ZERO, Expr, var, variables, with_operands
from tile_eg.ir.index_elements import all_elements_in, with_elements
from tile_eg.ir.program import Loop, Program
from tile_eg.ir.sharing import once
from tile_eg.ir.sizes import usual
from tile_eg.ops.records import record
from tile_eg.timeline.accesses import Access, at_start, sharing
from tile_eg.timeline.arrays import values
from tile_eg.timeline.beside import new_shares

MOST_STEPS = 512
MOST_PIECES = 64  # of a window
ONE_PASS = 1.05  # times the size of a tensor: tails may be counted as whole tiles
WAVE = "launch wave"
Starts = tuple[tuple[int, ...], ...]


@record
class Room:
    """Bytes of L2 within which what is read is found again, and within which what is written stays (0: nobody asks)."""

    found: int
    written: int = 0

    @classmethod
    def of(cls, chip: Chip) -> Room:
        return cls(chip.l2_reach, chip.l2_written)


@dataclass
class _Window:
    """What an access touches, step by step: where the windows of the blocks start, and the bytes of each.

    `inside` is the share of the reads of a window that are the first of their bytes, and `new` that of its bytes which no window
    beside it has brought in the same trip. Windows that overlap come in `pieces`, which
    begin so many elements behind their start; `size` is then that of a piece.
    """

    access: Access
    outer: tuple[Loop, ...]
    size: int
    inside: float
    starts: Starts
    pieces: Sequence[int] = (0,)
    new: float = 1.0
    missed: int = 0
    read: int = 0
    step: int = -1

    def wrote(self, start: int) -> bool:
        """Whether what starts there is part of what it touched last."""
        if self.step < 0:
            return False
        rows, cols = at_start(self.access.instr.rows), at_start(self.access.instr.cols)
        inside = (divmod(start - first, usual(self.access.window.stride)) for first in self.starts[self.step] if start >= first)
        return any(row < rows and col < cols for row, col in inside)

    def goes_with(self, first: _Window, depth: int) -> bool:
        """Whether it is in the same loop at this depth; the two kinds of cores go through a loop of one name side by side."""
        if len(self.outer) <= depth:
            return False
        mine, other = self.outer[depth], first.outer[depth]
        apart = self.access.instr.core != first.access.instr.core
        return mine is other or (apart and (mine.var, mine.trips) == (other.var, other.trips))

    def as_seen(self, loops: dict[int, int]) -> Hashable:
        """All that L2 sees of it; `loops` numbers those around it as they come."""
        a, around = self.access, [(loops.setdefault(id(v), len(loops)), v.var, v.trips) for v in self.outer]
        shape = () if a.reads else (at_start(a.instr.rows), at_start(a.instr.cols), usual(a.window.stride))
        shares = self.size, self.inside, self.new
        return a.window.tensor, a.reads, a.instr.core, *around, *shares, tuple(self.pieces), shape, self.starts

    @property
    def share(self) -> float:
        return min(1.0, self.missed / self.read * self.inside) if self.read else 1.0


@dataclass
class _Cache:
    """Windows by a number for each, the one that was touched last at the end; `dirty` are those that HBM does not have yet."""

    capacity: int
    held: OrderedDict[int, int] = field(default_factory=OrderedDict)
    bytes: int = 0
    dirty: set[int] = field(default_factory=set)

    def touch(self, key: int, size: int, *, writes: bool = False) -> bool:
        """Whether it was there."""
        if writes:
            self.dirty.add(key)
        before = self.held.get(key)
        if before is not None and before >= size:
            self.held.move_to_end(key)
            return True
        self.held.pop(key, None)
        self.held[key] = size
        self.bytes += size - (before or 0)
        while self.bytes > self.capacity:
            oldest, n = self.held.popitem(last=False)
            self.bytes -= n
            self.dirty.discard(oldest)
        return before is not None

    @property
    def unwritten(self) -> int:
        """Bytes that HBM does not have yet."""
        return sum(self.held[key] for key in self.dirty)


@record
class _Followed:
    """What was found: the share of each window's bytes that comes from HBM; the bytes that were written to what is not handed
    over and to L2 at all, and those of the latter that HBM does not have yet."""

    shares: Sequence[float]
    written: int
    kept: int
    unwritten: int


def _apart(a: Access) -> int:
    """Windows of an access in one block: one, or as many as it reads rows that lie anywhere."""
    return max(1, at_start(a.instr.rows)) * (a.halves if SUB in a.names else 1) if a.reads and EACH in a.names else 1


class L2:
    """Follows one launch, wave after wave."""

    def __init__(
        self, program: Program, found: Sequence[Access], tensors: Mapping[str, int], room: Room, at_once: int,
        handed: Collection[str],
    ) -> None:  # fmt: skip
        """Of the `handed` tensors nobody asks what stays."""
        self.found, self.tensors, self.l2_bytes, self.handed = found, tensors, room.found, handed
        self.kept = _Cache(room.written)
        self.blocks, self.at_once = program.blocks, at_once
        self.waves = Loop(WAVE, -(-program.blocks // at_once), ())
        self.held: dict[int, bool] = {}
        self.writers: list[_Window] = []
        self.followed: _Followed | None = None
        self.numbers = {name: n for n, name in enumerate(tensors)}
        self.read = self._read_again()

    def shares(self) -> dict[int, float]:
        """The share of each load's bytes that comes from HBM, by id of its Instr."""
        if not self.read and not self._reads_back() and not self.kept.capacity:
            return {id(a.instr): 1.0 for a in self.found if a.reads}
        windows, loops = self._windows(), dict[int, int]()
        seen = tuple(w.as_seen(loops) for w in windows)
        key = self.l2_bytes, self.kept.capacity, frozenset(self.handed), frozenset(self.read), seen
        self.followed = once("followed", key, partial(self._followed, windows))
        return {id(a.instr): share for a, share in zip(self.found, self.followed.shares, strict=True) if a.reads}

    def _followed(self, windows: Sequence[_Window]) -> _Followed:
        self.writers = [w for w in windows if not w.access.reads]
        self._play(_nested(windows, 0), 0, _Cache(self.l2_bytes))
        written = sum(w.read for w in self.writers if w.access.window.tensor not in self.handed)
        return _Followed([w.share for w in windows], written, self.kept.bytes, self.kept.unwritten)

    def unwritten(self) -> float:
        """Bytes that were written and are still in L2 when the launch ends, after `shares`.

        Where loops were not followed to their end, the rest of them goes on alike.
        """
        total = sum(a.moved for a in self.found if not a.reads and a.window.tensor not in self.handed)
        if not self.followed or not self.followed.written:
            return 0.0
        ahead = max(1.0, min(total / self.followed.written, self.kept.capacity / max(1, self.followed.kept)))
        return self.followed.unwritten * ahead

    def _reads_back(self) -> bool:
        """Whether something is read that the launch wrote."""
        written, read = ({a.window.tensor for a in self.found if a.reads is reads} for reads in (False, True))
        return not written.isdisjoint(read)

    def _read_again(self) -> set[str]:
        """The tensors of which something is read more than once: those that are not read in one pass without overlap."""
        read: dict[str, float] = {}
        again = set()
        at_once = sharing(self.found, self.at_once)
        for a in self.found:
            if a.reads:
                name = a.window.tensor
                read[name] = read.get(name, 0) + a.moved
                if at_once[id(a.instr)] > 1 or not all(a.varies(v) for v in a.loops if v.trips > 1):
                    again.add(name)
        return again | {name for name, n in read.items() if n > ONE_PASS * self.tensors[name]}

    # ---- windows --------------------------------------------------------------------------------------------------------

    def _windows(self) -> list[_Window]:
        windows = [self._window(a) for a in self.found]
        for w, new in zip(windows, new_shares([(w.access, w.starts) for w in windows]), strict=True):
            w.new = new if len(w.pieces) == 1 else 1.0
        return windows

    def _window(self, a: Access) -> _Window:
        loops = (self.waves, *a.loops)
        depth, steps = 0, 1
        while depth < len(loops) and (steps * loops[depth].trips <= MOST_STEPS or depth == 0):
            steps *= loops[depth].trips
            depth += 1
        if depth == 1 and len(loops) > 1 and steps == 1:
            depth = 2  # the outermost loop of a stream is followed as far as the steps go
        outer, inner = loops[:depth], loops[depth:]
        size = min(self.tensors[a.window.tensor], round(a.bytes * a.times(v for v in inner if a.varies(v)))) // _apart(a)
        again = prod(v.trips for i, v in enumerate(inner) if not a.varies(v) and self._fits((*outer[1:], *inner[: i + 1])))
        starts = self._starts(a, outer)
        pieces = (0,) if _apart(a) > 1 else _pieces(a, inner, starts)
        return _Window(a, outer, round(size / len(pieces)), 1 / max(1, again), starts, pieces)

    def _starts(self, a: Access, outer: Sequence[Loop]) -> Starts:
        """Where the windows of the blocks start, each start once, by step of the outer loops; rows that lie anywhere alone.

        Guards that leave out trips of loops further inside leave out no window.
        """
        a = replace(a, window=replace(a.window, offset=_from_the_first(a.window.offset, [v for v in a.loops if v not in outer])))
        inside = {v.var for v in a.loops} - {v.var for v in outer}
        guards = tuple(g for g in a.guards if g.op != "const" and inside.isdisjoint(variables(g)))
        if _apart(a) > 1:
            return self._of_blocks(a, outer, guards)
        around = tuple((v.var, v.trips) for v in outer)
        key = a.window.offset, a.guards, guards, around, self.blocks, self.at_once
        return once("starts", key, lambda: self._of_blocks(a, outer, guards))

    def _of_blocks(self, a: Access, outer: Sequence[Loop], guards: Sequence[Expr]) -> Starts:
        """The same, of blocks at which the `guards` hold."""
        counts = [min(v.trips, MOST_STEPS) for v in outer]
        env: dict[str, Any] = {}
        for i, v in enumerate(outer):
            env[v.var] = np.arange(counts[i]).reshape([-1 if j == i else 1 for j in range(len(outer) + 1)])
        apart, wide = _apart(a), _apart(a) * self.at_once
        env[BLOCK] = env[WAVE] * self.at_once + np.arange(wide) // apart
        names = frozenset[str]().union(a.names, *map(variables, a.guards))
        env |= dict.fromkeys(names - env.keys(), 0)
        offset = self._anywhere(a, env, outer) if apart > 1 else a.window.offset
        active = env[BLOCK] < self.blocks
        for guard in guards:
            active = active & (values(guard, env) != 0)
        shape = (*counts, wide)
        starts = map(tuple, np.broadcast_to(values(offset, env), shape).reshape(-1, wide).tolist())
        if np.all(active):
            return tuple(starts)
        masks = np.broadcast_to(active, shape).reshape(-1, wide).tolist()
        return tuple(tuple(n for n, on in zip(row, mask, strict=True) if on) for row, mask in zip(starts, masks, strict=True))

    def _anywhere(self, a: Access, env: dict[str, Any], outer: Sequence[Loop]) -> Expr:
        """The offset of rows that a tensor's values name, its `env` completed: any rows, each as likely as the others (assumed).

        What an element names is the same row wherever it is read. The rows that trips further inside name are one window.
        """
        each, wide = max(1, at_start(a.instr.rows)), np.arange(_apart(a) * self.at_once)
        env[EACH], env[SUB] = wide % each, wide // each % (_apart(a) // each)
        held = self.tensors[a.window.tensor] * at_start(a.instr.cols) // max(1, a.bytes // _apart(a) * usual(a.window.stride))
        naming = frozenset[str]().union(*map(variables, all_elements_in(a.window.offset)))
        together, tables = max(1, round(a.times(v for v in a.loops if v not in outer and v.var in naming))), [*self.tensors]

        def drawn(element: Expr) -> Expr:
            name, place, most, _ = element.args
            number = _mixed(values(with_elements(place, drawn), env), tables.index(name) if name in tables else len(tables))
            env[str(element)] = number % max(1, min(held, most + 1) // together) * together
            return var(str(element))

        return with_elements(a.window.offset, drawn)

    def _fits(self, outer: tuple[Loop, ...]) -> bool:
        """Whether L2 holds what all cores touch in one trip of the innermost of `outer`."""
        key = id(outer[-1])
        if key not in self.held:
            self.held[key] = self._touched(outer) <= self.l2_bytes
        return self.held[key]

    def _touched(self, outer: tuple[Loop, ...]) -> float:
        total: dict[str, float] = {}
        for a in self.found:
            if len(a.loops) >= len(outer) and all(mine is loop for mine, loop in zip(a.loops, outer, strict=False)):
                trips = a.times(v for v in a.loops[len(outer) :] if a.varies(v))
                first = self._starts(a, (Loop(WAVE, 1, ()),))
                total[a.window.tensor] = total.get(a.window.tensor, 0) + a.bytes // _apart(a) * trips * len(set(first[0]))
        return sum(min(n, self.tensors[name]) for name, n in total.items())

    # ---- time -----------------------------------------------------------------------------------------------------------

    def _play(self, nested: Sequence[_Nest | _Window], step: int, cache: _Cache) -> None:
        """Touches what windows do in the order of the program; `step` counts the trips of the loops around them."""
        for part in nested:
            if isinstance(part, _Window):
                self._touch(part, step, cache)
                continue
            for k in range(part.trips):
                self._play(part.inside, step * part.trips + k, cache)

    def _touch(self, window: _Window, step: int, cache: _Cache) -> None:
        starts: Sequence[int] = window.starts[step]
        if len(window.pieces) > 1:
            starts = [start + piece for start in starts for piece in window.pieces]
        tensor, size, new = window.access.window.tensor, window.size, round(window.size * window.new)
        window.step = step
        if window.access.reads and (writers := [w for w in self.writers if w.access.window.tensor == tensor]):
            just_written = [s for s in starts if any(w.wrote(s) for w in writers)]
            window.read += size * len(just_written)
            starts = [s for s in starts if s not in just_written]
        writes = not window.access.reads and tensor not in self.handed
        if tensor not in self.read:  # nobody looks for what is written, or read once: it takes its room
            self._missing(tensor, (-1 - step,), new * len(starts), cache, writes=writes)
            window.missed += new * len(starts)
        else:
            window.missed += new * self._missing(tensor, dict.fromkeys(starts), new, cache, writes=writes)
        window.read += size * len(starts)

    def _missing(self, tensor: str, starts: Iterable[int], size: int, cache: _Cache, *, writes: bool) -> int:
        """Touches windows of a tensor; how many were not there: not touched lately, nor written and not pushed out yet."""
        kept, dirty, held, missing = self.kept, self.kept.dirty, cache.held, 0
        number, apart, keeps = self.numbers[tensor], len(self.numbers), self.kept.capacity > 0
        for start in starts:
            key = start * apart + number
            there = key in dirty
            if keeps:
                kept.touch(key, size, writes=writes)
            if held.get(key, -1) >= size:
                held.move_to_end(key)
            elif not cache.touch(key, size) and not there:
                missing += 1
        return missing


@record
class _Nest:
    """A loop that is followed, and what is in it."""

    trips: int
    inside: Sequence[_Nest | _Window]


def _nested(windows: Sequence[_Window], depth: int) -> list[_Nest | _Window]:
    """The windows in the loops around them from `depth` on."""
    at, out = 0, list[_Nest | _Window]()
    while at < len(windows):
        window, end = windows[at], at + 1
        if depth == len(window.outer):
            out.append(window)
        else:
            while end < len(windows) and windows[end].goes_with(window, depth):
                end += 1
            out.append(_Nest(min(window.outer[depth].trips, MOST_STEPS), _nested(windows[at:end], depth + 1)))
        at = end
    return out


def _mixed(places: Any, table: int) -> np.ndarray:
    """A number below 2^31 for each place of a table, which those of its neighbours do not tell (SplitMix64's finaliser)."""
    x = np.atleast_1d(places).astype(np.uint64) + np.uint64(table << 40)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x >> np.uint64(33)).astype(np.int64)


def _from_the_first(offset: Expr, inner: Sequence[Loop]) -> Expr:
    """Where a window begins that all trips of the `inner` loops touch, wherever each block begins a loop."""
    if variables(offset).isdisjoint(v.var for v in inner):
        return offset
    if offset.op == "mod" and any(v.var in variables(offset.args[0]) and v.trips == offset.args[1].value for v in inner):
        return ZERO
    if offset.op not in ("add", "mul", "div", "mod", "min", "max"):
        return offset
    return with_operands(offset, [_from_the_first(e, inner) for e in offset.args])


def _pieces(a: Access, inner: Sequence[Loop], starts: Starts) -> Sequence[int]:
    """Where the trips of a loop further inside begin in a window, where windows that start there overlap; else its start."""
    moving = [v for v in inner if a.varies(v)]
    if not a.reads or len(moving) != 1:
        return (0,)
    first, then = (values(a.window.offset, dict.fromkeys(a.names, 0) | {moving[0].var: k}) for k in (0, 1))
    apart, trips = int(then - first), round(a.times(moving))
    found = sorted({start for step in starts for start in step})
    near = (0 < b - a < apart * trips and (b - a) % apart == 0 for a, b in pairwise(found))
    return range(0, apart * trips, apart) if 1 < trips <= MOST_PIECES and apart > 0 and any(near) else (0,)
