"""A choice that was made elsewhere: a file with one node for each class, as `tile-eg extract` and other extractors write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.errors import TileError, why_unread
from tile_eg.extract.base import Extraction, Refused
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.gym import node_id
from tile_eg.extract.makespan import makespan
from tile_eg.extract.pricing import Pricer


class Choices:
    """Takes what a file chose: `{"choices": {class: node}}` with the ids of `tile-eg export`."""

    name = "choices"

    def __init__(self, file: str) -> None:
        self.file = file

    def extract(self, graph: Graph, chip: Chip, pricer: Pricer, k: int = 3) -> Extraction:
        nodes = self._nodes(graph, self._read())
        prices = [pricer.price(n) for n in graph.nodes]
        cost = makespan(graph, chip, nodes, prices)
        out = Extraction([], extractor=self.name)
        try:
            schedule = build_schedule(graph, nodes, prices, chip)
        except Refused as refused:
            help = "its nodes have one cost each; what is judged on a whole schedule is not in the file"
            raise TileError(f"the choice in '{self.file}' is not a legal schedule: {refused}", help=help) from None
        schedule.cost = cost
        out.schedules.append(schedule)
        return out

    def _read(self) -> dict[str, str]:
        try:
            data: Any = json.loads(Path(self.file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise TileError(f"cannot read choices from '{self.file}': {why_unread(error)}") from None
        choices = data.get("choices") if isinstance(data, dict) else None
        if not isinstance(choices, dict):
            raise TileError(f"'{self.file}' holds no choices", help='choices are {"choices": {"class": "node", ...}}')
        return choices

    def _nodes(self, graph: Graph, choices: dict[str, str]) -> list[Node]:
        """The chosen nodes that the root needs. TileError where a class has none, or one of another graph."""
        known = {node_id(n): n for n in graph.nodes}
        out: dict[int, Node] = {}
        stack = [graph.root]
        while stack:
            cls = stack.pop()
            if cls in out:
                continue
            chosen = choices.get(str(cls))
            if chosen not in known or known[chosen].cls != cls:
                what = "chooses nothing" if chosen is None else f"chooses '{chosen}', which this kernel does not have,"
                help = "export the same kernel, at the same sizes, for the same chip and with the same rules"
                raise TileError(f"'{self.file}' {what} for class {cls}", help=help)
            out[cls] = known[chosen]
            stack.extend(out[cls].children)
        return sorted(out.values(), key=lambda n: n.index)
