"""Our graphs for the extractors of others, and our extractors on theirs: files in the JSON of extraction-gym."""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from tile_eg.chips import load_chip
from tile_eg.cost_models import roles, search_model
from tile_eg.egraph import Node
from tile_eg.errors import TileError
from tile_eg.extract import make_extractor
from tile_eg.extract.frozen import frozen
from tile_eg.extract.gym import Foreign, dump, load
from tile_eg.extract.pricing import Pricer
from tile_eg.ir.printed import Printed
from tile_eg.ops.records import record
from tile_eg.report.text import duration, table
from tile_eg.search.compiler import Lowered


def exported(lowered: Lowered, whole: bool = False) -> str:
    """The graph from which a kernel's schedules are chosen, as JSON; `whole`: with what one cost a node cannot say, too."""
    best = lowered.extraction.best
    model = search_model(roles(lowered.search.cost_model, lowered.chip).search, lowered.chip)
    kept = None if whole else frozen(best.graph, best.nodes)
    return json.dumps(dump(best.graph, Pricer(best.graph, lowered.chip, model), kept), indent=1)


@record(repr=False)
class Extracted(Printed):
    """What an extractor chose in a graph from a file. `cost` counts each node once, `tree` as often as it is used."""

    file: str
    extractor: str
    foreign: Foreign
    nodes: tuple[Node, ...]
    seconds: float
    optimal: bool

    @property
    def cost(self) -> float:
        return self.foreign.cost(list(self.nodes))

    @property
    def tree(self) -> float:
        """The cost with shared parts counted at each use."""
        chosen = {n.cls: n for n in self.nodes}
        known: dict[int, float] = {}
        stack = [self.foreign.graph.root]
        while stack:  # children first, without recursion
            node = chosen[stack[-1]]
            missing = [c for c in node.children if c not in known]
            if missing:
                stack += missing
            else:
                known[stack.pop()] = self.foreign.costs[node.index] + sum(known[c] for c in node.children)
        return known[self.foreign.graph.root]

    def __str__(self) -> str:
        graph = self.foreign.graph
        rows = [
            ("graph", f"{len(self.foreign.ids)} nodes in {len(graph.classes) - 1} classes that a choice can use"),
            ("extractor", self.extractor + ("" if self.optimal else ", not to the end: out of time")),
            ("chosen", f"{len(self.nodes) - 1} nodes"),
            ("cost", f"{self.cost:g} (as a tree: {self.tree:g})"),
            ("time", duration(self.seconds)),
        ]
        return f"{self.file}\n{table(rows)}"

    def choices(self) -> str:
        """The choice as JSON, which `--extractor choices=FILE` takes for a graph of ours."""
        held = {"choices": self.foreign.choices(list(self.nodes)), "cost": self.cost}
        return json.dumps(held, indent=1)


def extracted(text: str, file: str, extractor: str = "exact", settings: Mapping[str, Any] | None = None) -> Extracted:
    """Runs an extractor on the graph in a text. TileError where the text is no graph, or the extractor finds nothing."""
    foreign = load(text, file)
    start = perf_counter()
    found = make_extractor(extractor, settings or {}).extract(foreign.graph, load_chip(), foreign, 1)  # type: ignore[arg-type]
    if not found.schedules:
        raise TileError(f"'{file}': the extractor '{extractor}' found no choice", help="try another one: greedy always finds one")
    return Extracted(file, extractor, foreign, tuple(found.best.nodes), perf_counter() - start, not found.gave_up)
