"""The best schedule that takes a certain decision; or why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Overflow, Refused
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.model import Model
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.schedule import Schedule
from tile_eg.extract.solver import Bounds, least_bounded
from tile_eg.ops.records import record

TRIES = 8


@record
class Answer:
    """A schedule, or the choices that were refused on the way to none; `overflow` is the memory that was too small."""

    schedule: Schedule | None = None
    refused: tuple[Refused, ...] = ()
    overflow: Overflow | None = None


class Forced:
    """Answers questions about one graph; the constraint model is built once for all of them."""

    def __init__(self, graph: Graph, chip: Chip, pricer: Pricer, work: float = 5.0) -> None:
        self.graph, self.chip, self.pricer, self.work = graph, chip, pricer, work
        self.models: dict[bool, Model] = {}
        self.bounds: dict[bool, Bounds] = {}

    def one_of(self, members: Sequence[Node], held: Sequence[Node] = ()) -> Answer:
        """The cheapest legal schedule with at least one of these nodes, and with all of `held` where they go together."""
        found = self._search(members, held, capacity=True)
        if found.schedule is None and held:
            found = self._search(members, (), capacity=True)
        if found.schedule or found.overflow:
            return found
        larger = self._search(members, (), capacity=False)
        return Answer(None, (*found.refused, *larger.refused), larger.overflow)

    def _search(self, members: Iterable[Node], held: Iterable[Node], capacity: bool) -> Answer:
        model = self._model(capacity).copy()
        model.cp.add_bool_or([model.chosen[n.index] for n in members])
        for n in held:
            model.cp.add(model.chosen[n.index] == 1)
        refused: list[Refused] = []
        for _ in range(TRIES):
            nodes = self._solve(model, self.bounds[capacity])
            if nodes is None:
                break
            try:
                schedule = build_schedule(self.graph, nodes, model.prices, self.chip, members)
            except Refused as r:
                refused.append(r)
                model.forbid(r.cut or nodes)
            else:
                return Answer(schedule, tuple(refused))
        return Answer(None, tuple(refused), next((r.overflow for r in refused if r.overflow), None))

    def _model(self, capacity: bool) -> Model:
        if capacity not in self.models:
            self.models[capacity] = Model(self.graph, self.chip, self.pricer, capacity)
            self.models[capacity].minimise_time()
            self.bounds[capacity] = Bounds(self.models[capacity].cp, self.models[capacity].parts())
        return self.models[capacity]

    def _solve(self, model: Model, bounds: Bounds) -> list[Node] | None:
        values = least_bounded(model.cp, self.work, bounds).values
        return None if values is None else [n for n in self.graph.nodes if values[model.chosen[n.index].index]]
