"""Many unlike tiles: some of a core's tiles are run, and stand for all of them.

Under a causal mask each tile of a core has a trip more than the one before. Where a core has more of them than `MOST`, it goes
through its first and last ones and through some of those between, one behind the other; what a tile adds to the time is then a
function of how many trips it has, which is taken to be linear between the numbers of trips that were run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import lcm

import numpy as np

from tile_eg.ir.index import BLOCK, SUB, Expr, evaluate, variables
from tile_eg.ir.program import Instr, Loop, Program, SetFlag, Tasks, Tile, WaitFlag, walk
from tile_eg.ir.sampling import spread
from tile_eg.ops.records import record
from tile_eg.timeline.arrays import sample, values
from tile_eg.timeline.cores import Core

MOST = 128
"""So many tiles of a core are run one by one (assumed: fewer take less time than the choice of some)."""
SAMPLED = 48
"""So many are run where there are more (assumed; `TRUSTED` says whether they were enough)."""
TRUSTED = 0.02
"""The most by which tiles that were run may differ, on average, from what their neighbours tell of them (assumed)."""
LONGEST_RING = 12
"""The most tiles behind which flags and slots have their numbers again; a tile that is left out leaves out so many (assumed)."""


@record
class Sample:
    """The tiles of a core that are run, in order, of which the first `head` and the last two stand for themselves alone.

    `trips` are those of each; `between` the trips of the tiles that the others stand for, and how many tiles have so many.
    """

    tiles: Sequence[int]
    trips: np.ndarray
    head: int
    between: tuple[np.ndarray, np.ndarray]

    def total(self, each: np.ndarray) -> float:
        """The sum over all tiles of what was found of `each` one that was run."""
        inner = slice(self.head, -2)
        at, of = _by_trips(self.trips[inner], each[inner])
        trips, counts = self.between
        return float(each[: self.head].sum() + each[-2:].sum() + (_linear(trips, at, of) * counts).sum())

    def trusted(self, each: np.ndarray) -> bool:
        """Whether what was found of the tiles between is what those with fewer and with more trips tell of them."""
        inner = slice(self.head, -2)
        at, of = _by_trips(self.trips[inner], each[inner])
        told = of[:-2] + (of[2:] - of[:-2]) * (at[1:-1] - at[:-2]) / (at[2:] - at[:-2])
        return len(at) > 2 and float(np.abs(of[1:-1] - told).sum()) <= TRUSTED * float(of[1:-1].sum())


def _linear(trips: np.ndarray, at: np.ndarray, of: np.ndarray) -> np.ndarray:
    """What numbers of trips take, linear between those that were looked `at`, and beyond them as between the last two."""
    found = np.interp(trips, at, of)
    for end, beside, beyond in ((0, 1, trips < at[0]), (-1, -2, trips > at[-1])):
        found += beyond * (trips - at[end]) * (of[end] - of[beside]) / (at[end] - at[beside])
    return found


def _by_trips(trips: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of trips, each once and in order, with the mean of what was found of each."""
    at, place = np.unique(trips, return_inverse=True)
    return at, np.bincount(place, found) / np.bincount(place)


def sampled(program: Program, block: int) -> Sample | None:
    """The tiles that stand for all of a block's; None where they are few or alike, or rings are too long to leave tiles out."""
    tops = [n for nodes in (program.cube, program.vector) for n in nodes if isinstance(n, Tasks)]
    if not tops or tops[0].trips <= MOST:
        return None
    var, known = tops[0].var, {BLOCK: block, SUB: 0}
    counted, ring = list(dict.fromkeys(e for top in tops for e in _counted(top))), _ring(tops)
    if not counted or ring > LONGEST_RING or any(not variables(e) <= {var, *known} for e in counted):
        return None
    count = min(tops[0].trips, evaluate(tops[0].until, known))
    if count <= MOST:
        return None
    numbers, stand_for = sample(count)
    trips = sum((np.maximum(values(e, {**known, var: numbers}), 0) for e in counted), np.zeros(len(numbers)))
    tiles, head = _chosen(numbers, trips, count, ring)
    inner = (numbers >= head) & (numbers < count - 2)
    own = sum((np.maximum(values(e, {**known, var: np.array(tiles)}), 0) for e in counted), np.zeros(len(tiles)))
    weights = stand_for[inner] * (count - 2 - head) / stand_for[inner].sum()
    return Sample(tiles, own, head, (trips[inner], weights))


def _chosen(numbers: np.ndarray, trips: np.ndarray, count: int, ring: int) -> tuple[list[int], int]:
    """The tiles to run, and how many at the start stand for themselves: of those between, some with few and some with many trips.

    Each comes as many places of a ring behind the one before as it does when all are run.
    """
    ordered = numbers[np.argsort(trips, kind="stable")]
    wanted = sorted({int(ordered[k]) for k in (*spread(len(ordered), SAMPLED), len(ordered) - 1)}, reverse=True)
    tiles = [count - 1, count - 2]
    for t in wanted:
        t -= (t - tiles[-1] + 1) % ring
        if ring <= t < tiles[-1]:
            tiles.append(t)
    head = tiles[-1] % ring or ring
    return [*range(head), *tiles[::-1]], head


def _counted(tiles: Tasks) -> Iterator[Expr]:
    """How often the loops run whose trips a tile decides."""
    loops = (n for n in walk(tiles.body) if isinstance(n, Loop) and n.until is not None)
    return (n.until for n in loops if n.until is not None and tiles.var in variables(n.until))


def _ring(tops: Sequence[Tasks]) -> int:
    """After how many tiles all flags and slots have the numbers that they had."""
    found = (n for top in tops for e in _named(top) for n in _rounds(e, top.var))
    return lcm(*found)


def _named(tiles: Tasks) -> Iterator[Expr]:
    for n in walk(tiles.body):
        if isinstance(n, SetFlag | WaitFlag):
            yield n.id
        elif isinstance(n, Instr):
            yield from (o.slot for o in (n.dst, *n.srcs) if isinstance(o, Tile))
            yield n.unit


def _rounds(e: Expr, var: str) -> Iterator[int]:
    """The divisors of the remainders in which a variable stands."""
    if e.op == "mod" and var in variables(e.args[0]):
        yield e.args[1].value or LONGEST_RING + 1
    yield from (n for a in e.args if isinstance(a, Expr) for n in _rounds(a, var))


def steps_of(cores: Sequence[Core], end: float) -> np.ndarray:
    """By how many cycles each tile that was run moved the cores on."""
    before = np.max([[mark.done for mark in core.marks] for core in cores], axis=0)
    return np.diff([0.0, *before[1:], end])


def extrapolated(cores: Sequence[Core], found: Sample, weight: Mapping[str, int]) -> tuple[dict, dict]:
    """What pipes were busy, and the bytes by path, of all tiles; `weight` says how many cores of a kind did the same."""
    busy: dict[tuple[str, str], float] = {}
    moved: dict[str, float] = {}
    for core in cores:
        for pipe, n in _totals([m.busy for m in core.marks], core.busy, found).items():
            busy[core.name, pipe] = n
        for path, n in _totals([m.bytes for m in core.marks], core.bytes, found).items():
            moved[path] = moved.get(path, 0) + n * weight[core.name]
    return busy, moved


def _totals(marks: Sequence[Mapping[str, float]], end: Mapping[str, float], found: Sample) -> dict[str, float]:
    """Of sums that were looked at when each tile began and at the end, those over all tiles."""
    out = {}
    for key, last in end.items():
        at = np.array([*(m.get(key, 0.0) for m in marks), last])
        out[key] = float(at[0]) + found.total(np.diff(at))
    return out
