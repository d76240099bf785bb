"""A rule is needed where a kernel gets slower without it, or cannot be compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from benchmarks.rules.kernels import chip_of
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.rules import registry
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower

SLOWER = 1.001
UNTRACED = ("nest", "algebra", "tiling", "loops")
TRIES = 8
STANDS_IN = {
    "bands-across": "bands-down", "bands-down": "bands-across", "v-mask-index": "v-mask-in-place",
}  # fmt: skip
"""Rules for which another one stands in: both are left out."""


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


def compiled(name: str, kernel: Kernel, without: Sequence[str] = ()) -> Lowered:
    """The kernel on the chip that it is tried on."""
    return lower(kernel, chip_of(name), search=search_options(without=without))


def microseconds(made: Lowered) -> float:
    return made.candidates[0].microseconds


def tried(rule: str, name: str, kernel: Kernel, with_it: float) -> Witness:
    """The kernel without the rule, and without the one that would stand in for it."""
    left_out = [rule, *([STANDS_IN[rule]] if rule in STANDS_IN else [])]
    try:
        return Witness(rule, name, with_it, microseconds(compiled(name, kernel, left_out)))
    except TileError:
        return Witness(rule, name, with_it, None)


def matched(made: Lowered) -> set[str]:
    """The rules whose results may be part of a schedule: those that made its nodes, and those of values that matched."""
    schedule = made.candidates[0].schedule
    behind = schedule.second.nodes if schedule.second else []
    used = {r for n in (*schedule.nodes, *behind, *([schedule.on_cores] if schedule.on_cores else [])) for r in n.rules}
    of_grids = {r for g in schedule.graph.grids for r in g.rules}
    anywhere = {r for p in made.phases for r, n in p.matches.items() if n} - of_grids
    return used | {r for r in anywhere if registry()[r].ruleset in UNTRACED}


class Search:
    """Looks for a kernel that needs each rule. Every kernel is compiled with all rules once."""

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        self.kernels = kernels
        self.made: dict[str, tuple[float, set[str]]] = {}

    def with_all(self, name: str) -> tuple[float, set[str]]:
        """The microseconds of a kernel, and the rules that may have shaped it."""
        if name not in self.made:
            made = compiled(name, self.kernels[name])
            self.made[name] = microseconds(made), matched(made)
        return self.made[name]

    def tried(self, rule: str, name: str) -> Witness:
        return tried(rule, name, self.kernels[name], self.with_all(name)[0])

    def witness(self, rule: str, known: str | None = None) -> Witness | None:
        """A kernel that needs a rule: the `known` one if it does, else the first of up to `TRIES` that could."""
        first = self.tried(rule, known) if known in self.kernels else None
        return first if first and first.needed else self.first(rule)

    def first(self, rule: str) -> Witness | None:
        """The first kernel that needs a rule, of those few in which it matched."""
        few = islice((n for n in self.kernels if rule in self.with_all(n)[1]), TRIES)
        return next((w for w in (self.tried(rule, n) for n in few) if w.needed), None)
