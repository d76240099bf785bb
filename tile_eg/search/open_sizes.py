"""Open block sizes: the few that the quick estimate likes best are compiled; the predicted time of the best candidate decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from math import inf

from tile_eg.chips import Chip
from tile_eg.errors import TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ops.types import Level
from tile_eg.search.form import Form, Setting
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer, Tried
from tile_eg.sizing.candidates import Candidate, Climb, Trial, distinct, named, shortlist, sizes_text
from tile_eg.sizing.estimate import IN_PARTS

RESORTS = 3  # sizes that are tried where none of the best can be compiled: those that fit and need least room
SURE = 0.63  # the least part of its estimate that a kernel of vector cores was seen to take (layer norm of 4096 x 8192, BM=4)
LARGER = 3  # sizes that do not fit as they are which are tried where all that do fill UB


class OpenSizes:
    """The sizes of one kernel that are worth compiling; `make` compiles the kernel at sizes that it is told in words."""

    def __init__(self, kernel: OpenKernel, setting: Setting, make: Callable[[Kernel, str], Form]) -> None:
        self.kernel, self.setting, self.make = kernel, setting, make
        self.offered: dict[Offer, Candidate] = {}
        self.kernels: dict[Candidate, Kernel] = {}

    @cached_property
    def climb(self) -> Climb:
        options = self.setting.options
        return Climb(self.kernel, self.setting.chip, to_values, options.moves if options.effort != "none" else ())

    @cached_property
    def found(self) -> list[Candidate]:
        """All sizes that were estimated, best first."""
        return self.climb.run()

    @cached_property
    def best(self) -> list[Candidate]:
        tries = MOVES["open-sizes"].tries[self.setting.options.level]
        likely = [*shortlist(self.found, max(1, tries - LARGER)), *_larger(self.found), *_wider(self.found, self.setting.chip)]
        return list(dict.fromkeys(likely))

    def offers(self) -> Iterator[Offer]:
        """The sizes that look best."""
        return (self._offer(c) for c in self.best)

    def resorts(self) -> Iterator[Offer]:
        """What is tried where none of these can be compiled: sizes that fit and need least room."""
        others = [c for c in self.found if c not in self.best and c.excess <= 1]
        by_room = sorted(others, key=lambda c: (c.excess, sum(c.estimate.bytes.values()), c.sizes))[:RESORTS]
        return (self._offer(c) for c in by_room)

    def _offer(self, c: Candidate) -> Offer:
        sizes = named(self.kernel.open, c.sizes)
        bound = c.estimate.least_us(self.setting.chip, SURE)
        made = Offer(MOVES["open-sizes"], sizes_text(sizes), bound, partial(self._made, c), group="open sizes")
        self.offered[made] = c
        return made

    def _made(self, c: Candidate) -> Made:
        sizes = named(self.kernel.open, c.sizes)
        self.kernels[c] = self.kernel.build(sizes)
        return Made(form=self.make(self.kernels[c], sizes_text(sizes)))

    def trials(self, tried: Sequence[Tried], forms: Sequence[Form]) -> tuple[Trial, ...]:
        """The sizes that were compiled, fastest first, and then those that could not be."""
        found = [self._trial(self.offered[t.offer], t, forms) for t in tried if t.offer in self.offered and t.made]
        return tuple(sorted(found, key=lambda t: (t.predicted is None, t.predicted or 0.0)))

    def _trial(self, c: Candidate, tried: Tried, forms: Sequence[Form]) -> Trial:
        own = [form for form in forms if form.kernel is self.kernels.get(c)]
        fastest = min((form.microseconds for form in own), default=inf)
        problem = tried.why or next((_message(form.problem) for form in own if form.problem), "")
        estimated = self.setting.chip.microseconds(c.estimate.cycles)
        return Trial(named(self.kernel.open, c.sizes), estimated, *((fastest, "") if fastest < inf else (None, problem)))

    def problem(self, tried: Sequence[Tried], forms: Sequence[Form]) -> Exception:
        """Why none can be compiled: the reason of the best, with the sizes that were tried."""
        names = ", ".join(self.kernel.open)
        trials = [t for t in self.trials(tried, forms) if t.problem]
        if not trials and self.climb.refused:
            return self.climb.refused
        if not trials:
            return TileError(f"no sizes were found for {names}: it can be built at none", help="give numbers")
        faults = (*(form.problem for form in forms), *(t.fault for t in tried))
        first = next((fault for fault in faults if isinstance(fault, TileError)), None)
        if first is not None and all(t.problem == first.message for t in trials):
            return first
        told = [f"with {t}: {t.problem}" for t in trials]
        notes = tuple((text, None) for text in told[1:])
        if first is None:
            return TileError(told[0], help="give numbers", notes=notes)
        error = TileError(told[0], first.span, help=first.help, notes=(*first.notes, *notes))
        error.source = first.source
        return error


def _wider(found: Sequence[Candidate], chip: Chip) -> list[Candidate]:
    """Tiles of products that L0C alone cannot hold side by side: in parts they may go through it. None where others do better."""
    enough = min((c.estimate.cycles for c in found if c.excess <= 1), default=inf)
    able = [c for c in found if 1 < c.excess <= IN_PARTS and c.estimate.cube and c.estimate.cycles < enough]
    able = [c for c in able if all(b <= chip.level_bytes(x) for x, b in c.estimate.bytes.items() if x is not Level.L0C)]
    return sorted(able, key=lambda c: (c.estimate.cycles, c.sizes))[:1]


def _message(error: Exception | None) -> str:
    return error.message if isinstance(error, TileError) else str(error)


def _larger(found: Sequence[Candidate]) -> list[Candidate]:
    """Tiles for vector cores that go through in parts, as they do not fit: where the best that do fit have no room to load
    meanwhile, or are not estimated to be faster."""
    best = next((c for c in found if c.excess <= 1), None)
    enough = best.estimate.cycles if best and best.estimate.overlaps else None
    large = [c for c in found if c.excess > 1 and not c.estimate.cube and (enough is None or c.estimate.cycles < enough)]
    return sorted(distinct(large), key=lambda c: (c.estimate.cycles, c.sizes))[:LARGER]
