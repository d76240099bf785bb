"""A small graph network (torch) over a program's instructions: who reads what whom wrote, and the order on each pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent))
from inputs import guess, target, times

from tile_eg.chips import Chip
from tile_eg.cost_models.context import PIPES, context
from tile_eg.errors import TileError
from tile_eg.ir.program import Program
from tile_eg.laboratory.graphs import EDGE_KINDS, NODE_FEATURES, OPS, GraphArrays, graph_of

WIDTH, ROUNDS, EPOCHS = 32, 3, 60


def torch() -> Any:
    try:
        import torch as found
    except ImportError:
        raise TileError("the graph network needs torch", help="pip install 'tile_eg[torch]'") from None
    return found


def network() -> Any:
    """Nodes are embedded, hear of their neighbours by kind of edge three times, and are summed up by pipe."""
    t = torch()
    t.manual_seed(0)
    nn = t.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.op, self.pipe = nn.Embedding(len(OPS), WIDTH), nn.Embedding(len(PIPES), WIDTH)
            self.numbers = nn.Linear(len(NODE_FEATURES), WIDTH)
            self.heard = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2 * len(EDGE_KINDS)))
            self.next = nn.GRUCell(WIDTH, WIDTH)
            self.said = nn.Sequential(nn.Linear(2 * WIDTH + 3, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))

        def forward(self, g: GraphArrays, us: float) -> Any:
            h = self.op(t.from_numpy(g.ops)) + self.pipe(t.from_numpy(g.pipes)) + self.numbers(t.from_numpy(g.nodes))
            edges, kinds = t.from_numpy(np.ascontiguousarray(g.edges)), t.from_numpy(g.kinds)
            for _ in range(ROUNDS):
                news = t.zeros_like(h)
                for kind in range(len(EDGE_KINDS)):
                    a, b = edges[:, kinds == kind]
                    news = news.index_add(0, b, self.heard[2 * kind](h[a])).index_add(0, a, self.heard[2 * kind + 1](h[b]))
                h = self.next(t.relu(news), h)
            whole = t.cat([h.mean(0), h.max(0).values, t.from_numpy(g.whole), t.tensor([float(np.log2(us))])])
            return self.said(whole).squeeze()

    return Net()


class GraphNet:
    """A rank model: it needs the whole program, and nothing of it is counted by hand but the guess."""

    name = "graph net"

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.net: Any = None

    def predict(self, programs: Sequence[Program]) -> list[float]:
        if self.net is None:
            raise TileError("the graph network has learnt nothing", help="give it measurements with update, or load a file")
        contexts = [context(p, self.chip) for p in programs]
        with torch().no_grad():
            said = [float(self.net(graph_of(p, self.chip), guess(c))) for p, c in zip(programs, contexts, strict=True)]
        return times(contexts, said)

    def update(self, measurements: Sequence[tuple[Program, float]]) -> None:
        t = torch()
        t.set_num_threads(1)
        self.net = network()
        contexts = [context(p, self.chip) for p, _ in measurements]
        graphs = [graph_of(p, self.chip) for p, _ in measurements]
        wanted = [target(c, us) for c, (_, us) in zip(contexts, measurements, strict=True)]
        steps, random = t.optim.Adam(self.net.parameters(), 2e-3), np.random.default_rng(0)
        for _ in range(EPOCHS):
            for some in np.array_split(random.permutation(len(graphs)), max(1, len(graphs) // 16)):
                steps.zero_grad()
                said = t.stack([self.net(graphs[i], guess(contexts[i])) for i in some])
                t.nn.functional.mse_loss(said, t.tensor([wanted[i] for i in some], dtype=t.float32)).backward()
                steps.step()

    def save(self, path: Path) -> None:
        torch().save(self.net.state_dict(), path)

    def load(self, path: Path) -> None:
        try:
            self.net = network()
            self.net.load_state_dict(torch().load(path, weights_only=True))
        except (OSError, RuntimeError, ValueError) as error:
            raise TileError(f"cannot read the cost model file '{path}': {error}") from error
