"""Where all choices of a graph can be listed, the exact extractor's best is the shortest legal one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice

import pytest

from tests.extract.kernels import CHIP, TRICKY, graph_of, pricer
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Refused
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.exact import Exact
from tile_eg.extract.makespan import makespan

MOST = 20_000
SOFTMAX = """
kernel softmax[M=16, N=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N]
  fragment m: f32[M], l: f32[M]
  x = X[0, 0]
  m = rowmax(x)
  x = exp(x - m[:, None])
  l = rowsum(x)
  Y[0, 0] = x / l[:, None]
}
"""
GEMM = """
kernel gemm[M=32, N=32, K=64, BK=32](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[M, BK], b: f16[BK, N]
  fragment c: f32[M, N] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[0, k*BK]
    b = B[k*BK, 0]
    c += a @ b
  }
  C[0, 0] = c
}
"""
LISTED = (
    "chain", "constant_tail", "fibonacci", "narrow_product", "one_value_two_tensors", "operand_lives_on", "relu_cast", "shift",
    "tanh_half",
)  # fmt: skip
SMALL = {"softmax": SOFTMAX, "gemm": GEMM, **{n: TRICKY[n] for n in LISTED}}


def choices(graph: Graph, todo: tuple[int, ...], pick: dict[int, Node]) -> Iterator[dict[int, Node]]:
    """Every way to give each class that is needed one of its nodes."""
    while todo and todo[-1] in pick:
        todo = todo[:-1]
    if not todo:
        yield dict(pick)
        return
    for node in graph.classes[todo[-1]]:
        pick[todo[-1]] = node
        yield from choices(graph, todo[:-1] + tuple(node.children), pick)
        del pick[todo[-1]]


def well_founded(pick: Mapping[int, Node]) -> bool:
    """Whether no class is made of itself."""
    left = {c: set(n.children) for c, n in pick.items()}
    while ready := [c for c, needs in left.items() if not needs & left.keys()]:
        for c in ready:
            del left[c]
    return not left


def reads_where_placed(nodes: list[Node]) -> bool:
    """Whether every state is read in the memory in which it lies."""
    placed = {n.payload for n in nodes if n.op == "State"}
    return all(n.payload in placed for n in nodes if n.op in ("PArg", "PProj"))


def shortest(graph: Graph) -> tuple[int, int]:
    """(how many choices there are, cycles of the shortest legal one); `build_schedule` judges, and says how deep buffers are."""
    prices = [pricer(graph).price(n) for n in graph.nodes]
    listed = [list(p.values()) for p in islice(choices(graph, (graph.root,), {}), MOST) if well_founded(p)]
    best = math.inf
    for time, nodes in sorted(((makespan(graph, CHIP, n, prices), n) for n in listed), key=lambda x: x[0]):
        if time >= best:
            break
        with suppress(Refused):
            if reads_where_placed(nodes):
                best = min(best, build_schedule(graph, nodes, prices, CHIP).cost)
    return len(listed), round(best)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SMALL))
def test_the_exact_optimum_is_the_best_of_all_choices(name: str) -> None:
    graph = graph_of(SMALL[name])
    listed, best = shortest(graph)
    assert listed < MOST
    found = Exact().extract(graph, CHIP, pricer(graph), 1).best
    assert best * 0.99 <= found.cost <= best * 1.01
