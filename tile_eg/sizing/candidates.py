"""Candidates for open block sizes: a climb from several starts by the quick estimate, and the few that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from tile_eg.chips import Chip
from tile_eg.errors import TileError
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.values import Values
from tile_eg.sizing.estimate import Estimate, estimate

COARSE = (16, 32, 64, 128, 256, 512)
FINE = (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)
STARTS = (128, 32)
MOST = 120  # estimates in one search

Sizes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Candidate:
    """Values for the open sizes, in their order, with the estimate. Smaller is better: what fits, then time, then room."""

    sizes: Sizes
    estimate: Estimate
    excess: float

    @property
    def rank(self) -> tuple[float, float, int, Sizes]:
        return max(1.0, self.excess), self.estimate.cycles, sum(self.estimate.bytes.values()), self.sizes


class Climb:
    """Evaluates sizes, each once; a size at which the kernel cannot be built is left out."""

    def __init__(self, kernel: OpenKernel, chip: Chip, to_values: Callable[..., Values]) -> None:
        self.kernel, self.chip, self.to_values = kernel, chip, to_values
        self.seen: dict[Sizes, Candidate | None] = {}

    def run(self) -> list[Candidate]:
        """Every candidate that was met, best first."""
        for start in STARTS:
            self._climb((start,) * len(self.kernel.open), _coarse)
        self._climb(self._best().sizes if self._best() else (STARTS[0],) * len(self.kernel.open), _fine)  # type: ignore[union-attr]
        return sorted((c for c in self.seen.values() if c), key=lambda c: c.rank)

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
        except TileError:
            return None
        found = estimate(values, self.chip)
        return Candidate(sizes, found, found.excess(self.chip))


def named(names: Sequence[str], sizes: Sizes) -> Mapping[str, int]:
    return dict(zip(names, sizes, strict=True))


def _coarse(at: Sizes) -> Iterator[Sizes]:
    """Twice or half a size; twice the one and half the other; two sizes swapped."""
    for i in range(len(at)):
        yield from _moved(COARSE, at, {i: 1})
        yield from _moved(COARSE, at, {i: -1})
    for i, j in permutations(range(len(at)), 2):
        yield from _moved(COARSE, at, {i: 1, j: -1})
        if i < j and at[i] != at[j]:
            yield tuple(at[{i: j, j: i}.get(x, x)] for x in range(len(at)))


def _fine(at: Sizes) -> Iterator[Sizes]:
    """One size a step up or down."""
    for i in range(len(at)):
        yield from _moved(FINE, at, {i: 1})
        yield from _moved(FINE, at, {i: -1})


def _moved(ladder: Sizes, at: Sizes, by: Mapping[int, int]) -> Iterator[Sizes]:
    steps = [ladder.index(n) + by.get(i, 0) for i, n in enumerate(at)]
    if all(0 <= s < len(ladder) for s in steps):
        yield tuple(ladder[s] for s in steps)


def shortlist(found: Sequence[Candidate], count: int) -> list[Candidate]:
    """The best candidates that differ in what a block stores, with the runner-up of the best one among them."""
    fitting = _distinct([c for c in found if c.excess <= 1]) or list(found[:1])
    best_of: dict[object, Candidate] = {}
    for c in fitting:
        best_of.setdefault(c.estimate.stored, c)
    chosen = list(best_of.values())
    runner_up = [c for c in fitting[1:] if c.estimate.stored == fitting[0].estimate.stored][:1]
    kept = list(dict.fromkeys([*chosen[: max(1, count - 1)], *runner_up, *chosen[count - 1 :]]))[:count]
    return sorted(kept, key=lambda c: c.rank)


def _distinct(found: Sequence[Candidate]) -> list[Candidate]:
    """The first of those that the estimate cannot tell apart."""
    out: dict[tuple[int, int], Candidate] = {}
    for c in found:
        out.setdefault((c.estimate.blocks, round(c.estimate.cycles)), c)
    return list(out.values())
