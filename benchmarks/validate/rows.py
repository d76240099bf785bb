"""Reads the measurements, and builds and times the program of each."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from benchmarks.experts.attention import Attention, attention
from benchmarks.experts.epilogue import by_ub
from benchmarks.experts.gemm import Gemm, gemm
from benchmarks.validate.vector import add, copy, through
from tile_eg.chips import Chip, load_chip
from tile_eg.chips.loader import with_numbers
from tile_eg.ir.program import Program
from tile_eg.timeline.engine import Timeline, run
from tile_eg.timeline.summary import handover_range

DATA = Path(__file__).with_name("measured.toml")
BUILD: dict[str, Callable[..., Program]] = {
    "gemm": lambda **a: gemm(Gemm(**a)),
    "by_ub": lambda **a: by_ub(Gemm(**a)),
    "attention": lambda **a: attention(Attention(**a)),
    "copy": copy,
    "add": add,
    "through": through,
}


@dataclass(frozen=True)
class Row:
    """One published time in microseconds, and the program that has its schedule.

    A time is that of a task, or `on_cores` what its cores took, from the kernel's first instruction on.
    """

    family: str
    name: str
    chip: str
    measured: float
    used: str
    source: str
    schedule: str
    build: str
    args: dict[str, Any]
    on_cores: bool = False

    @property
    def machine(self) -> Chip:
        return load_chip(self.chip)

    @cached_property
    def program(self) -> Program:
        return BUILD[self.build](**{k: _tuple(v) for k, v in self.args.items()})

    @cached_property
    def timeline(self) -> Timeline:
        return run(self.program, self.machine)

    @cached_property
    def handover(self) -> tuple[float, float] | None:
        """Microseconds over the range of the latency between cores; None where no core waits for another."""
        return handover_range(self.program, self.machine)

    @property
    def predicted(self) -> float:
        return self._told(self.timeline)

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted / self.measured - 1

    @cached_property
    def left_out(self) -> float:
        """The error with the constants that were set on the row's family as they would be without it."""
        return self._told(run(self.program, with_numbers(self.chip, without(self.family)), record=False)) / self.measured - 1

    def _told(self, timeline: Timeline) -> float:
        return timeline.microseconds - (timeline.launch_us - self.machine.launch.prologue_us if self.on_cores else 0.0)


def _tuple(v: Any) -> Any:
    return tuple(v) if isinstance(v, list) else v


@lru_cache(maxsize=1)
def rows() -> tuple[Row, ...]:
    """Every row of the data file, in its order."""
    data = tomllib.loads(DATA.read_text("utf-8"))
    return tuple(Row(**r | {"source": data["sources"][r["source"]]}) for r in data["row"])


def without(family: str) -> dict[str, float]:
    """What the constants that were set on rows of a family would be without them, by name."""
    return tomllib.loads(DATA.read_text("utf-8"))["without"][family]  # type: ignore[no-any-return]


def pairs() -> list[tuple[Row, Row]]:
    """(before, after): what their author changed made the second one quicker."""
    named = {r.name: r for r in rows()}
    return [(named[a], named[b]) for a, b in tomllib.loads(DATA.read_text("utf-8"))["order"]["pairs"]]
