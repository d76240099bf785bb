"""Schedules of one kernel that differ in decisions, under numbers that stay: 1 is the one that `emit` writes.

The first `POOL` (or as many as the effort keeps) are what the search found, fastest first; behind them stands the runner-up of
every decision of the first, in the order of the decisions. A schedule whose program is there already gets no number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.errors import TileError, did_you_mean
from tile_eg.explore.otherwise import Otherwise
from tile_eg.explore.runners import flips
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.printed import Printed
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.report.cost import between
from tile_eg.report.decisions import OPEN, UNDECIDED
from tile_eg.report.differences import differences
from tile_eg.report.text import indent, share, size, table
from tile_eg.search import SearchOptions, search_options
from tile_eg.search.candidates import distinct
from tile_eg.search.compiler import Candidate, Lowered, lower

POOL = 8
LEVELS = (Level.L1, Level.L0C, Level.UB)
MEASURES: dict[str, Callable[[Numbered], float]] = {
    "time": lambda n: n.microseconds,
    "l1": lambda n: n.bytes(Level.L1),
    "l0c": lambda n: n.bytes(Level.L0C),
    "ub": lambda n: n.bytes(Level.UB),
    "workspace": lambda n: n.workspace,
    "gm": lambda n: n.moved,
    "instructions": lambda n: len(n.candidate.schedule.nodes),
}
"""What schedules can be compared in; less is better. `gm` are the bytes that go to and from GM."""


@record
class Numbered:
    """A candidate and its number."""

    number: int
    candidate: Candidate

    @property
    def microseconds(self) -> float:
        return self.candidate.microseconds

    @property
    def time(self) -> str:
        """The predicted time, and between what times it lies where it is the timeline's."""
        return between(self.microseconds, self.candidate.interval)

    def is_open(self, best: Numbered) -> bool:
        """Whether what is assumed of the chip leaves open which of the two is quicker; both have the same launch."""
        cores = best.candidate.planned.cost.on_cores
        return self.number != best.number and cores is not None and self.microseconds <= cores[1]

    @property
    def workspace(self) -> int:
        """Bytes of GM that cores meet in, for each block."""
        program = self.candidate.planned.program
        return program.workspace + sum(t.dtype.bytes * prod(t.shape) for t in program.shared) // program.blocks

    @property
    def moved(self) -> float:
        """Bytes that go to and from GM."""
        return sum(count for path, count in self.candidate.planned.timeline.bytes.items() if "GM" in path)

    def bytes(self, level: Level) -> int:
        """How far a memory is filled."""
        schedule = self.candidate.schedule
        phases = schedule.phases
        return max(s.peaks.get(level, 0) for s in phases)


@record(repr=False)
class Alternatives(Printed):
    """Numbered schedules of a kernel; `lowered` is the kernel as `emit` has it."""

    lowered: Lowered
    shown: Sequence[Numbered]
    among: int

    def __str__(self) -> str:
        best = self.shown[0]
        rows = [_row(n, best) for n in self.shown]
        header = ("", "predicted", "of best", "bound by", *map(str, LEVELS), "workspace", "blocks")
        numbers = table(rows, header, right=(0, 1, *range(4, 9)))
        marked = [numbers, *([f"  {UNDECIDED}"] if any(n.is_open(best) for n in self.shown) else [])]
        others = [n for n in self.shown if n.number > 1]
        texts = differences(((str(n.number), n.candidate.schedule) for n in others), self.lowered.candidates[0].schedule)
        told = [f"{n.number}:\n{indent(text)}" for n, text in zip(others, texts, strict=True)]
        return "\n\n".join(["\n".join(marked), *(["what differs from 1", *told] if told else [])])


def _row(n: Numbered, best: Numbered) -> tuple[str, ...]:
    timeline = n.candidate.planned.timeline
    blocks = str(timeline.blocks)
    memories = (size(n.bytes(level)) for level in LEVELS)
    of_best = share(n.microseconds, best.microseconds) + OPEN * n.is_open(best)
    return (str(n.number), n.time, of_best, timeline.bound, *memories, size(n.workspace), blocks)


def alternatives(
    kernel: Kernel, chip: str = DEFAULT_CHIP, *, search: SearchOptions | None = None, k: int = POOL, pareto: Sequence[str] = ()
) -> Alternatives:
    """The first `k` numbered schedules; with `pareto`, those among all of them that none beats in all of these `MEASURES`."""
    for name in pareto:
        if name not in MEASURES:
            raise TileError(f"--pareto {name}: schedules are not compared in that", help=did_you_mean(name, MEASURES))
    lowered, found = numbered(kernel, chip, search, k, everything=bool(pareto))
    shown = front(found, pareto) if pareto else found[:k]
    return Alternatives(lowered, shown, len(found))


def numbered(
    kernel: Kernel, chip: str, search: SearchOptions | None, upto: int, everything: bool = False
) -> tuple[Lowered, list[Numbered]]:
    """The kernel as `emit` has it, and its schedules by number, at least `upto` of them where there are as many."""
    options = search or search_options()
    lowered = lower(kernel, chip, search=options)
    more = lower(lowered.kernel, chip, search=replace(options, tuned=None, k=max(POOL, options.schedules)))
    found = distinct([lowered.candidates[0], *more.candidates])
    if everything or len(found) < upto:
        found = distinct([*found, *(c for _, _, c in flips(Otherwise(lowered)) if c is not None)])
    return lowered, [Numbered(i + 1, c) for i, c in enumerate(found)]


def schedule_number(number: int, kernel: Kernel, chip: str = DEFAULT_CHIP, search: SearchOptions | None = None) -> Numbered:
    """The schedule of a kernel with this number. TileError where there is none."""
    return schedules_numbered([number], kernel, chip, search)[0]


def schedules_numbered(
    numbers: Sequence[int], kernel: Kernel, chip: str = DEFAULT_CHIP, search: SearchOptions | None = None
) -> list[Numbered]:
    """The schedules of a kernel with these numbers. TileError for a number that none has."""
    _, found = numbered(kernel, chip, search, max(numbers), everything=min(numbers) < 1)
    for number in numbers:
        if not 1 <= number <= len(found):
            help = f"this kernel has 1 to {len(found)}: tile-eg alternatives FILE -k {len(found)} shows them"
            raise TileError(f"there is no schedule {number}", help=help)
    return [found[number - 1] for number in numbers]


def front(found: Sequence[Numbered], measures: Sequence[str]) -> list[Numbered]:
    """Those that no other one beats: as good in every measure, and better in one."""
    values = {n.number: tuple(MEASURES[m](n) for m in measures) for n in found}
    beaten = {
        n.number
        for n in found
        for o in found
        if all(a <= b for a, b in zip(values[o.number], values[n.number], strict=True))
        and (values[o.number] != values[n.number] or o.number < n.number)
    }
    return [n for n in found if n.number not in beaten]
