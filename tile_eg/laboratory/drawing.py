"""Draws of legal schedules: choices of nodes that are random, spread over the decisions, or near the best, put in order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tile_eg.chips import Chip
from tile_eg.cost_models import search_model
from tile_eg.egraph import Graph, Node
from tile_eg.extract import Schedule
from tile_eg.extract.base import Refused
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.grid import with_grids
from tile_eg.extract.model import Model
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.solver import load_cp_model, small_solver

WAYS = ("near", "spread", "random")
"""How schedules are drawn: the best with a few decisions taken otherwise; options that were drawn the least so far; by chance."""
CHANGES = 4
"""A draw near the best takes up to so many decisions otherwise."""
REFUSALS = 12
"""Choices that may turn out illegal before a draw is given up."""
PULL = 15
"""With each refusal nodes of the best choice weigh so much less: where memory is short, few choices by chance are legal."""
WORK = 0.05
"""Of the solver for one choice, in its own unit: it need not prove that the choice is the best."""


@dataclass
class Draws:
    """Draws from one e-graph. What was found illegal, or drawn, is not drawn again: the solver's model remembers it.

    `best` is a legal choice: what is near it, and where a draw by chance begins.
    """

    graph: Graph
    chip: Chip
    best: list[Node]
    random: Random
    used: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.model = Model(self.graph, self.chip, Pricer(self.graph, self.chip, search_model("analytic", self.chip)))
        self.open = sorted(c for c, nodes in self.graph.classes.items() if len(nodes) > 1)
        self.held = {n.index for n in self.best}

    def draw(self, way: str) -> Schedule | None:
        """The next schedule; None where this draw found no legal one."""
        weights = {"near": self._near, "spread": self._spread, "random": self._by_chance}[way]()
        for refusal in range(REFUSALS):
            nodes = self._solved([w - PULL * refusal * (i in self.held) for i, w in enumerate(weights)])
            schedule = self._legal(nodes) if nodes is not None else None
            if schedule is not None or nodes is None:
                return self._on_cores(schedule) if schedule else None
        return None

    def _near(self) -> list[int]:
        """Few nodes other than the best's, and a strong wish for some that it does not have."""
        weights = [-20 if i in self.held else self.random.randint(0, 10) for i in range(len(self.graph.nodes))]
        for cls in self.random.sample(self.open, min(len(self.open), self.random.randint(1, CHANGES))):
            others = [n for n in self.graph.classes[cls] if n.index not in self.held]
            if others:
                weights[self.random.choice(others).index] = -400
        return weights

    def _spread(self) -> list[int]:
        """Against what was drawn often; among equals by chance."""
        return [20 * self.used[i] + self.random.randint(-30, 30) for i in range(len(self.graph.nodes))]

    def _by_chance(self) -> list[int]:
        return [self.random.randint(-60, 100) for _ in self.graph.nodes]

    def _solved(self, weights: list[int]) -> list[Node] | None:
        """The choice of the least weight."""
        cp_model: Any = load_cp_model()
        self.model.cp.minimize(sum(w * x for w, x in zip(weights, self.model.chosen, strict=True)))
        cp = small_solver(WORK)
        if cp.solve(self.model.cp) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        return [n for n in self.graph.nodes if cp.boolean_value(self.model.chosen[n.index])]

    def _legal(self, nodes: list[Node]) -> Schedule | None:
        try:
            schedule = build_schedule(self.graph, nodes, self.model.prices, self.chip)
        except Refused as refused:
            self.model.forbid(refused.cut or [n for n in nodes if n.op not in ("Buffers", "L0")])
            return None
        self.used.update(n.index for n in nodes)
        self.model.forbid(nodes)
        return schedule

    def _on_cores(self, schedule: Schedule) -> Schedule:
        """With a block for each tile, or with one of the persistent grids that the rules offer."""
        grids = [g for g in self.graph.grids if g.op == "Persistent"]
        if not grids or self.random.random() < 0.5:
            return schedule
        try:
            return self.random.choice(with_grids(schedule, self.random.choice(grids), self.chip))
        except Refused:
            return schedule
