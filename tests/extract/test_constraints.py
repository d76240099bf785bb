"""Any choice of nodes, also one from outside, is refused with its reason or computes what the kernel means."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import CHIP, COPIED_LATE, GATED, SHIFT, SWAP, graph_of, kernel, pricer
from tests.extract.test_chaos import EXAMPLES, SMALL
from tile_eg.chips import load_chip
from tile_eg.egraph import Graph, Node, saturate
from tile_eg.extract.base import Refused
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.constraints import check_constraints, constraints
from tile_eg.extract.exact import Exact
from tile_eg.extract.schedule import Schedule
from tile_eg.frontend.ssa import to_values
from tile_eg.search.compiler import meaning, plan_schedule

SOURCES = {
    "gated": (GATED, {}), "swap": (SWAP, {}), "copied_late": (COPIED_LATE, {}),
    **{n: ((EXAMPLES / f"{n}.tile").read_text(), SMALL[n]) for n in ("flash_attention", "matmul_add", "online_softmax")},
}  # fmt: skip


def any_choice(graph: Graph, seed: int) -> list[Node]:
    """A choice without cycles, at random: of each class the node of least depth, as edges of random lengths have it."""
    draw = random.Random(seed)
    length = [draw.random() ** 3 * 10 + 0.01 for _ in graph.nodes]
    depth: dict[int, float] = {}
    best: dict[int, Node] = {}
    changed = True
    while changed:
        changed = False
        for n in graph.nodes:
            if all(c in depth for c in n.children):
                found = length[n.index] + max((depth[c] for c in n.children), default=0.0)
                if found < depth.get(n.cls, 1e9) - 1e-9:
                    depth[n.cls], best[n.cls], changed = found, n, True
    return needed(graph, best)


def needed(graph: Graph, best: dict[int, Node]) -> list[Node]:
    out: dict[int, Node] = {}
    stack = [graph.root]
    while stack:
        cls = stack.pop()
        if cls not in out:
            out[cls] = best[cls]
            stack.extend(best[cls].children)
    return sorted(out.values(), key=lambda n: n.index)


def realised(graph: Graph, nodes: list[Node]) -> Schedule | None:
    try:
        return build_schedule(graph, nodes, [pricer(graph).price(n) for n in graph.nodes], CHIP)
    except Refused:
        return None


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_any_choice_that_is_accepted_computes_what_the_kernel_means(name):
    text, sizes = SOURCES[name]
    graph, arrays = graph_of(text, **sizes), arrays_for(kernel(text, **sizes))
    want = meaning(kernel(text, **sizes), arrays)
    for schedule in filter(None, (realised(graph, any_choice(graph, seed)) for seed in range(20))):
        run = plan_schedule(schedule, CHIP).run(arrays, strict=False)
        assert not run.findings
        for tensor, values in want.items():
            np.testing.assert_allclose(run[tensor].astype(np.float32), values.astype(np.float32), rtol=4e-3, atol=4e-3)


@pytest.mark.slow
def test_a_state_that_is_read_where_it_does_not_lie_is_refused():
    text, sizes = SOURCES["online_softmax"]
    graph = graph_of(text, **sizes)
    nodes = Exact().extract(graph, CHIP, pricer(graph), 1).best.nodes
    read = next(n for n in nodes if n.op == "PProj")
    others = (n for n in graph.nodes if n.op == "PProj" and n.payload[:2] == read.payload[:2])
    elsewhere = next(n for n in others if n.payload != read.payload)
    with pytest.raises(Refused, match=r"place: a state of loop \w+ lies in UB.* and is read in UB"):
        check_constraints(graph, [elsewhere if n is read else n for n in nodes])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (SWAP, "a state ends in the place of another one"),
        (SHIFT, "a buffer is handed over that is kept for all trips of a loop"),
        (COPIED_LATE, "a buffer is handed over twice"),
        (COPIED_LATE, "what is copied when a trip ends is overwritten before"),
    ],
)
def test_what_breaks_a_law_of_cells_is_refused_with_the_reason(text, what):
    graph = graph_of(text)
    broken = next(constraint for constraint in constraints(graph) if constraint.what == what)
    states = [n for n in graph.nodes if n.op == "State" and n.payload in {p.payload for p in broken.nodes if p.op == "PArg"}]
    with pytest.raises(Refused, match=what):
        check_constraints(graph, [*broken.nodes[: broken.most + 1], *states])


def test_what_the_solver_finds_breaks_no_law():
    graph = graph_of(COPIED_LATE)
    for schedule in Exact().extract(graph, CHIP, pricer(graph), 3).schedules:
        check_constraints(graph, schedule.nodes)


WINDOW = """
kernel window[M=33, N=32, K=64, BM=32](A: f16[M, K], B: f16[3, K, N]) -> C: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared a: f16[BM, K], b: f16[K, N]
  fragment c: f32[BM, N] = 0
  for k in pipelined(3) {
    a = pad(A[bx*BM + k, 0], 0)
    b = B[k, 0, 0]
    c += a @ b
  }
  C[bx*BM, 0] = exp(c)
}
"""


@pytest.mark.parametrize(("m", "ways"), [(33, {"Part", "UBToL1"}), (64, set())], ids=["one row is left", "whole tiles"])
def test_two_vector_cores_bring_to_l1_what_is_read_of_both(m, ways):
    graph = saturate(to_values(kernel(WINDOW, M=m)), load_chip("950"))
    assert {n.op for c in constraints(graph) if "half" in c.what for n in c.nodes} == ways
