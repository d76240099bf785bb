"""What an extractor gives: a choice of nodes, put in order and proven legal, and the choices that were refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.errors import TileError
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.schedule import Schedule
from tile_eg.ops.physical import DECISIONS
from tile_eg.ops.records import record
from tile_eg.ops.types import Level


class Refused(Exception):
    """A choice that no order or storage makes legal: `cut` is what must not recur.

    `kind` is cycle, order, clobber, cell, stages, meeting or capacity.
    """

    def __init__(self, kind: str, what: str, cut: Iterable[Node] = (), overflow: Overflow | None = None) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind, self.what, self.cut, self.overflow = kind, what, tuple(cut), overflow


@record
class Overflow:
    """A level that is too small: its capacity and the storages that are live together, with their bytes."""

    level: str
    capacity: int
    live: tuple[tuple[str, int, object], ...]

    @property
    def bytes(self) -> int:
        return sum(b for _, b, _ in self.live)


@dataclass
class Extraction:
    """The best schedules, cheapest first, with different decisions; `refused` keeps (cost, reason).

    Where there are none, `problem` tells why, and `full` which memory is too small if that is the reason; `put_off`: another
    extractor may find one, and was not asked.
    """

    schedules: list[Schedule]
    refused: list[tuple[float, Refused]] = field(default_factory=list)
    extractor: str = ""
    solves: int = 0
    gave_up: bool = False  # out of time, or of patience with choices that turned out illegal, before all were tried
    problem: TileError | None = None
    full: Level | None = None
    put_off: bool = False

    @property
    def too_large(self) -> bool:
        """Whether the choice that would be best was refused for the room that it needs."""
        return bool(self.refused and self.refused[0][1].overflow)

    @property
    def best(self) -> Schedule:
        return self.schedules[0]

    @property
    def alternatives(self) -> list[Schedule]:
        return self.schedules[1:]


class Extractor(Protocol):
    """Finds up to `k` legal schedules of a graph."""

    name: str

    def extract(self, graph: Graph, chip: Chip, pricer: Pricer, k: int = 3) -> Extraction: ...


def decisions(nodes: Iterable[Node]) -> frozenset[Node]:
    """The nodes of a choice that are decisions: two schedules with the same ones differ in spelling only."""
    return frozenset(n for n in nodes if n.op in DECISIONS)
