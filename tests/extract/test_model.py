"""The solver's model of a choice takes the time that the search model says: else the shortest choice is not what it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extract.kernels import CHIP, graph_of, pricer
from tile_eg.extract.makespan import makespan
from tile_eg.extract.model import Model
from tile_eg.extract.solver import load_cp_model, solver

EXAMPLES = Path(__file__).parents[2] / "examples"
GATED = """
kernel gated[M=512, N=512, K=512, BM=128, BN=128, BK=64](X: f16[M, K], G: f16[K, N], U: f16[K, N]) -> Y: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared x: f16[BM, BK], g: f16[BK, BN], u: f16[BK, BN]
  fragment cg: f32[BM, BN] = 0, cu: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    x = X[bx*BM, k*BK]
    g = G[k*BK, by*BN]
    u = U[k*BK, by*BN]
    cg += x @ g
    cu += x @ u
  }
  Y[bx*BM, by*BN] = cg * sigmoid(cg) * cu
}
"""
TEXTS = {name: (EXAMPLES / f"{name}.tile").read_text() for name in ("gemm", "softmax", "online_softmax", "matmul_add")}


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("text", [*TEXTS.values(), GATED], ids=[*TEXTS, "gated"])
@pytest.mark.parametrize("op", ["Buffers", "Skew", "State"])
def test_it_takes_the_time_of_the_search_model(text: str, op: str) -> None:
    """Of the best choice with each way to decide one thing; far skews aside, whose way round only `makespan` knows."""
    graph, cp_model = graph_of(text), load_cp_model()
    for node in [n for n in graph.nodes if n.op == op and not (op == "Skew" and n.payload[1])]:
        model = Model(graph, CHIP, pricer(graph))
        model.minimise_time()
        model.cp.add(model.chosen[node.index] == 1)
        for skew in (n for n in graph.nodes if n.op == "Skew" and n.payload[1]):
            model.cp.add(model.chosen[skew.index] == 0)
        cp = solver(10.0)
        if cp.solve(model.cp) in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            nodes = [n for n in graph.nodes if cp.boolean_value(model.chosen[n.index])]
            assert cp.value(model.time) == makespan(graph, CHIP, nodes, model.prices)
