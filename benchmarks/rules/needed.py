"""A rule is needed where a kernel gets slower without it, or cannot be compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_eg.compiler import Lowered, lower
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.rules import registry
from tile_eg.search import search_options

SLOWER = 1.001
UNTRACED = ("nest", "algebra", "tiling", "loops")
TRIES = 5


@dataclass(frozen=True)
class Witness:
    """Predicted microseconds of a kernel with a rule and without it; None where it cannot be compiled without."""

    rule: str
    kernel: str
    with_it: float
    without: float | None

    @property
    def needed(self) -> bool:
        return self.without is None or self.without > SLOWER * self.with_it


def choices() -> list[str]:
    """All rules that are no facts."""
    return [r.name for r in registry().values() if r.law != "fact"]


def microseconds(made: Lowered) -> float:
    return made.candidates[0].microseconds


def tried(rule: str, name: str, kernel: Kernel, with_it: float) -> Witness:
    """The kernel without the rule."""
    try:
        return Witness(rule, name, with_it, microseconds(lower(kernel, search=search_options(without=[rule]))))
    except TileError:
        return Witness(rule, name, with_it, None)


def matched(made: Lowered) -> set[str]:
    """The rules whose results may be part of a schedule: those that made its nodes, and those of values that matched."""
    schedule = made.candidates[0].schedule
    used = {r for n in (*schedule.nodes, *([schedule.on_cores] if schedule.on_cores else [])) for r in n.rules}
    of_grids = {r for g in schedule.graph.grids for r in g.rules}
    anywhere = {r for p in made.phases for r, n in p.matches.items() if n} - of_grids
    return used | {r for r in anywhere if registry()[r].ruleset in UNTRACED}


def witnesses(kernels: dict[str, Kernel]) -> Iterator[Witness]:
    """The first kernel that needs each rule, of at most `TRIES` that could; rules that none of them needs are left out."""
    tries = dict.fromkeys(choices(), TRIES)
    for name, kernel in kernels.items():
        made = lower(kernel)
        for rule in [r for r, left in tries.items() if left and r in matched(made)]:
            found = tried(rule, name, kernel, microseconds(made))
            tries[rule] = 0 if found.needed else tries[rule] - 1
            if found.needed:
                yield found
