"""The interfaces of a cost model: one prices parts for the search, one orders candidates by their context, one ranks whole
planned programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tile_eg.ir.program import Program
from tile_eg.timeline.work import Work

if TYPE_CHECKING:
    from tile_eg.cost_models.context import Context


@runtime_checkable
class SearchModel(Protocol):
    """Prices a physical node without its context, so that a solver can add and compare."""

    name: str

    def node_cost(self, work: tuple[Work, ...]) -> dict[str, float]:
        """Busy cycles by core and pipe ("AIC.MTE2") of a node that consists of these instructions."""


@runtime_checkable
class ContextModel(Protocol):
    """Orders candidates by what is known before their flags: the loads of all pipes, bytes, instructions, buffers.

    The search plans first what it likes best, and prices nodes by what a little more load would cost the best candidate. A method
    `observe(contexts, microseconds)`, where there is one, hears what the rank model found of candidates.
    """

    name: str

    def score(self, contexts: Sequence[Context]) -> list[float]:
        """A number for each candidate: less is better. Microseconds, or their logarithm."""


@runtime_checkable
class RankModel(Protocol):
    """A black box that tells how long planned programs take."""

    name: str

    def predict(self, programs: Sequence[Program]) -> list[float]:
        """Microseconds of each program, in their order."""

    def update(self, measurements: Sequence[tuple[Program, float]]) -> None:
        """Learns from (program, measured microseconds) pairs."""

    def save(self, path: Path) -> None: ...

    def load(self, path: Path) -> None: ...
