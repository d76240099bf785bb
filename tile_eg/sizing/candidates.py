"""Candidates for open block sizes: a climb from several starts by the quick estimate, and the few that differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations, product, zip_longest
from math import log

from tile_eg.chips import Chip
from tile_eg.errors import TileError
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.values import Values
from tile_eg.ops.records import record
from tile_eg.ops.types import F32, Level
from tile_eg.sizing.estimate import Estimate
from tile_eg.sizing.phases import with_moves

COARSE = (16, 32, 64, 128, 256, 512)
FINE = (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)
SMALL, LONG = (1, 2, 4, 8), (1024, 2048, 4096, 8192, 16384)  # rows and columns of tiles on vector cores alone
STARTS, SMALL_START = (128, 32), 8
MOST = 120  # estimates in one search
UNSURE = 0.03
NEAR = 1.3  # tiles whose sides' ratios are no more are near each other

Sizes = tuple[int, ...]


@record(eq=False)
class Candidate:
    """Values for the open sizes, in their order, with the estimate. Smaller is better: what fits, then time, then room."""

    sizes: Sizes
    estimate: Estimate
    excess: float

    @property
    def rank(self) -> tuple[float, float, int, Sizes]:
        return max(1.0, self.excess), self.estimate.cycles, sum(self.estimate.bytes.values()), self.sizes


@record
class Trial:
    """Block sizes that were tried: microseconds by the quick estimate, and of the best candidate; None where there is none."""

    sizes: Mapping[str, int]
    estimated: float
    predicted: float | None
    problem: str = ""

    def __str__(self) -> str:
        return sizes_text(self.sizes)


class Climb:
    """Evaluates sizes, each once; those at which the kernel cannot be built are left out. `refused` is the first reason."""

    def __init__(self, kernel: OpenKernel, chip: Chip, to_values: Callable[..., Values], moves: Collection[str] = ()) -> None:
        """`moves` are those that may make two phases of the kernel."""
        self.kernel, self.chip, self.to_values = kernel, chip, to_values
        self.estimate = partial(with_moves, moves=moves)
        self.seen: dict[Sizes, Candidate | None] = {}
        self.refused: TileError | None = None

    def run(self) -> list[Candidate]:
        """Every candidate that was met, best first."""
        for start in STARTS:
            self._climb((start,) * len(self.kernel.open), lambda at: _coarse(self._ladder(COARSE), at))
        if self._ladder(COARSE) != COARSE:
            self._climb((SMALL_START,) * len(self.kernel.open), lambda at: _coarse(self._ladder(COARSE), at))
            self._long()
        best = self._best()
        self._climb(best.sizes if best else (STARTS[0],) * len(self.kernel.open), lambda at: _fine(self._ladder(FINE), at))
        if any(c.estimate.again for c in self.seen.values() if c):
            for sizes in _few_trips(len(self.kernel.open), self.chip):
                self.at(sizes)
        return sorted((c for c in self.seen.values() if c), key=lambda c: c.rank)

    def _long(self) -> None:
        """Of a kernel with one size on vector cores alone, all long ones. A climb ends where the next size is no better, but one
        that leaves cores idle may be better again: fewer cores start sooner (`launch.core_us` of the chip)."""
        for size in LONG if len(self.kernel.open) == 1 else ():
            self.at((size,))

    def _ladder(self, sizes: Sizes) -> Sizes:
        """The sizes to try: whole fractals where there are products."""
        cube = any(c.estimate.cube for c in self.seen.values() if c)
        return sizes if cube or not any(self.seen.values()) else (*SMALL, *sizes, *LONG)

    def _best(self) -> Candidate | None:
        return min((c for c in self.seen.values() if c), key=lambda c: c.rank, default=None)

    def _climb(self, at: Sizes, near: Callable[[Sizes], Iterable[Sizes]]) -> None:
        """To the best neighbour while that is better."""
        best = self.at(at)
        while len(self.seen) < MOST:
            found = [c for c in map(self.at, near(best.sizes if best else at)) if c]
            better = min(found, key=lambda c: c.rank, default=None)
            if better is None or (best and better.rank >= best.rank):
                break
            best = better

    def at(self, sizes: Sizes) -> Candidate | None:
        if sizes not in self.seen:
            self.seen[sizes] = self._evaluate(sizes)
        return self.seen[sizes]

    def _evaluate(self, sizes: Sizes) -> Candidate | None:
        try:
            values = self.to_values(self.kernel.build(named(self.kernel.open, sizes)))
        except TileError as error:
            self.refused = self.refused or error
            return None
        found = self.estimate(values, self.chip)
        return Candidate(sizes, found, found.excess(self.chip))


def _few_trips(count: int, chip: Chip) -> Iterator[Sizes]:
    """Tiles so long that a loop over them has few trips, which may all stay in UB: one size is long, the others are small."""
    for at, long in product(range(count), staying(chip)):
        yield from (rest[:at] + (long,) + rest[at:] for rest in product(SMALL, repeat=count - 1))


def staying(chip: Chip) -> list[int]:
    """Columns of tiles a few of which are a row that stays in UB: from those of long tiles on, as long as two of them fit, in
    f32, one for what is loaded and one for what is made of it."""
    most = chip.level_bytes(Level.UB) // (2 * F32.bytes)
    return [n for n in (LONG[0] << step for step in range(most.bit_length())) if n <= most]


def named(names: Sequence[str], sizes: Sizes) -> Mapping[str, int]:
    return dict(zip(names, sizes, strict=True))


def sizes_text(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={n}" for name, n in sizes.items())


def _coarse(ladder: Sizes, at: Sizes) -> Iterator[Sizes]:
    """Twice or half a size, or a quarter; twice the one and half the other; two sizes swapped."""
    for i in range(len(at)):
        for by in (1, -1, -2):
            yield from _moved(ladder, at, {i: by})
    for i, j in permutations(range(len(at)), 2):
        yield from _moved(ladder, at, {i: 1, j: -1})
        if i < j and at[i] != at[j]:
            yield tuple(at[{i: j, j: i}.get(x, x)] for x in range(len(at)))


def _fine(ladder: Sizes, at: Sizes) -> Iterator[Sizes]:
    """One size a step up or down."""
    for i in range(len(at)):
        yield from _moved(ladder, at, {i: 1})
        yield from _moved(ladder, at, {i: -1})


def _moved(ladder: Sizes, at: Sizes, by: Mapping[int, int]) -> Iterator[Sizes]:
    steps = [ladder.index(n) + by.get(i, 0) for i, n in enumerate(at)]
    if all(0 <= s < len(ladder) for s in steps):
        yield tuple(ladder[s] for s in steps)


def shortlist(found: Sequence[Candidate], count: int) -> list[Candidate]:
    """In turn the best of those whose blocks store tiles of other shapes, and the best of the others.

    The estimate is sure to a few hundredths: within these the rounder sizes come first.
    """
    fitting = sorted(distinct([c for c in found if c.excess <= 1]), key=_worth) or list(found[:1])
    apart: list[Candidate] = []
    for c in fitting:
        if not any(_near(c, d) for d in apart):
            apart.append(c)
    rest = [c for c in fitting if c not in apart]
    turns = [c for pair in zip_longest(apart, rest) for c in pair if c]
    return turns[:count]


def _worth(c: Candidate) -> tuple[int, tuple[int, Sizes], float]:
    return round(log(c.estimate.cycles) / UNSURE), _roughness(c.sizes), c.estimate.cycles


def _near(a: Candidate, b: Candidate) -> bool:
    """Whether two store tiles that are about as large; kernels of other tiles may store in other statements."""
    stored, other = a.estimate.stored, b.estimate.stored
    if len(stored) != len(other):
        return False
    return all(max(p) <= NEAR * min(p) for tiles in zip(stored, other, strict=True) for p in zip(*tiles, strict=True))


def distinct(found: Sequence[Candidate]) -> list[Candidate]:
    """The roundest of those that the estimate cannot tell apart: blocks alike, times within a thousandth."""
    out: list[Candidate] = []
    for c in sorted(found, key=lambda c: (c.estimate.blocks, round(log(c.estimate.cycles) * 1000), _roughness(c.sizes))):
        last = out[-1].estimate if out else None
        if not last or last.blocks != c.estimate.blocks or abs(log(last.cycles / c.estimate.cycles)) > 1e-3:
            out.append(c)
    return out


def _roughness(sizes: Sizes) -> tuple[int, Sizes]:
    """Fewest where sizes are powers of two."""
    return sum(n.bit_count() for n in sizes), sizes
