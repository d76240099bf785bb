"""The kernels that a text for all sizes holds, and which launches take each: by predicted times.

A few schedules serve all sizes between them, each those near the sizes that it was priced at. Before these come kernels for some
sizes alone: that copy operands first, from the sizes on that make up for it; without tails, for whole tiles; and those that have
the sizes given that were named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from tile_eg.chips import Chip
from tile_eg.emit.any_size_host import BY_POINTS, Picked, Range, bounds, exactly, multiples_of
from tile_eg.ir.index import MOST_SIZE
from tile_eg.ir.sharing import Itself, once
from tile_eg.search.any_size import Variant
from tile_eg.search.off_bursts import off_bursts, steps
from tile_eg.search.result import Lowered

CLEARLY = 0.97
"""A further schedule is kept where it takes no more than this part of the time of those that are there (assumed)."""
BETWEEN = 3
"""How often the sizes from which on a kernel is faster are halved in, once they are known to a factor of two: an eighth of that
is left (assumed)."""
Found = tuple[Lowered, ...]
"""What a search for all sizes finds: its best kernel, and where that copies operands first, the best that does not."""
Sizes = Mapping[str, int]
NONE: Sizes = MappingProxyType({})


class TextKernels:
    """The kernels of a text: those `found` for any size, and further ones for some, each with the sizes that take it first."""

    def __init__(self, found: Sequence[Lowered]) -> None:
        self.found, self.by_points = list(found), len(found)
        self.first: list[tuple[tuple[Range, ...], int]] = []

    def add_copying(self, made: Lowered, sizes: Sizes, most: Sizes = NONE, by: Sizes = NONE, asked: Sizes | None = None) -> bool:
        """Adds a kernel that copies operands first, where it is clearly faster at these sizes: from those on that make up for the
        copies, up to the `most`, where sizes are multiples of `by`; it is asked at multiples of others (None: the same)."""
        if not self._clearly_faster(made, sizes):
            return False
        by, asked = ({name: numbers.get(name, 1) for name in sizes} for numbers in (by, by if asked is None else asked))
        least = least_sizes(lambda at: self.time(made, at) < self.launched(at), sizes, asked)
        self.add(made, ((name, least[name], most.get(name, MOST_SIZE), by[name]) for name in sizes))
        return True

    def add_off_bursts(self, made: Sequence[tuple[Lowered | None, Sizes, Sizes]], bursts: Sizes) -> None:
        """Kernels that copy operands whose rows begin off bursts, for launches at sizes that are not multiples of these: each
        with the sizes that it is priced at and the largest that take it."""
        there = len(self.first)
        for kernel, sizes, most in made:
            if kernel:
                self.add_copying(kernel, off_bursts(sizes, bursts), most, asked=steps(bursts))
        if len(self.first) > there:
            self.first.insert(0, (multiples_of(bursts), BY_POINTS))

    def add_whole(self, made: Lowered, choices: Sequence[Sizes], by: Sizes) -> None:
        """A kernel for multiples of these numbers, where it is clearly faster at the last of the choices, and at none slower."""
        if self._clearly_faster(made, choices[-1]) and all(self.time(made, c) <= self.launched(c) for c in choices):
            self.add(made, multiples_of(by))

    def add_given(self, made: Lowered, sizes: Sizes) -> None:
        """The kernel that has these sizes given, where it is clearly faster."""
        if made.chosen.microseconds < CLEARLY * self.launched(sizes):
            self.add(made, exactly(sizes))

    def add(self, made: Lowered, ranges: Iterable[Range]) -> None:
        """One that launches in these ranges take before all others; it stands in the text once."""
        place = next((n for n, p in enumerate(self.found) if p.program == made.program), len(self.found))
        self.first.insert(0, (tuple(ranges), place))
        if place == len(self.found):
            self.found.append(made)

    def _clearly_faster(self, made: Lowered, sizes: Sizes) -> bool:
        return self.time(made, sizes) < CLEARLY * self.launched(sizes)

    def launched(self, sizes: Sizes) -> float:
        """What the kernel that launches at some sizes take so far takes there; the fastest one by the numbers at which kernels
        are priced, where several are."""
        place = Picked(picks=(BY_POINTS,), first=tuple(self.first)).at(dict(sizes))
        taken = self.found[: self.by_points] if place == BY_POINTS else [self.found[place]]
        return min(self.time(p, sizes) for p in taken)

    @staticmethod
    def time(kernel: Lowered, sizes: Sizes) -> float:
        """The predicted microseconds of a kernel at some sizes."""
        key = Itself(kernel), tuple(sorted(sizes.items()))
        return once("time of a kernel", key, lambda: time_at(Variant.of(kernel), kernel.chip, sizes))


def least_sizes(faster: Callable[[Sizes], bool], sizes: Sizes, by: Sizes) -> dict[str, int]:
    """The least sizes, all as many times smaller than these, from which on a kernel is `faster`, as it is at these: it is looked
    at each half of them, and a few times between the last two. They are multiples of numbers."""
    high, low = dict(sizes), _half(sizes, by)
    while low != high and faster(low):
        high, low = low, _half(low, by)
    for _ in range(BETWEEN if low != high else 0):
        middle = {name: (low[name] + high[name]) // 2 // by[name] * by[name] for name in sizes}
        low, high = (low, middle) if faster(middle) else (middle, high)
    return high


def _half(sizes: Sizes, by: Sizes) -> dict[str, int]:
    return {name: max(by[name], n // 2 // by[name] * by[name]) for name, n in sizes.items()}


def most_sizes(points: Mapping[str, Sequence[int]], choice: Sizes) -> dict[str, int]:
    """The largest sizes that are nearer to those of a choice than to larger ones that were named."""
    ends = {name: dict(zip(numbers, [*bounds(numbers), MOST_SIZE], strict=True)) for name, numbers in points.items()}
    return {name: ends[name][n] for name, n in choice.items()}


def family(found: Sequence[Lowered], choices: Sequence[Sizes]) -> tuple[list[Lowered], tuple[int, ...]]:
    """One kernel for all choices of sizes, and further ones for those at which they are clearly faster; and which of them each
    choice takes."""
    times = [[TextKernels.time(p, choice) for choice in choices] for p in found]
    kept = [min(range(len(found)), key=lambda n: sum(times[n]))]
    for place in range(len(choices)):
        best = min(range(len(found)), key=lambda n: times[n][place])
        if times[best][place] < CLEARLY * min(times[n][place] for n in kept):
            kept.append(best)
    picks = tuple(min(range(len(kept)), key=lambda n: times[kept[n]][place]) for place in range(len(choices)))
    return [found[n] for n in kept], picks


def time_at(variant: Variant, chip: Chip, sizes: Sizes) -> float:
    """The predicted microseconds of a kernel of any size at some; without end where it does not serve them."""
    from tile_eg.timeline import engine

    return float("inf") if variant.why_not(sizes) else engine.run(variant.at(sizes), chip, record=False).microseconds


__all__ = ["Found", "TextKernels", "family", "least_sizes", "most_sizes", "time_at"]
