"""The view holds what can take part in a schedule, and all of it."""

from __future__ import annotations

import pytest

from tests.extract.kernels import TRICKY, graph_of
from tile_eg.egraph import Graph
from tile_eg.ops.types import Level

pytestmark = pytest.mark.slow(but=9)

NAMES = sorted(TRICKY)
PLACED = {"GmToL1": Level.L1, "GmToUB": Level.UB, "WsToL1": Level.L1, "WsToL1Strips": Level.L1, "WsToUB": Level.UB,
          "FixToWS": Level.WS, "UBToWS": Level.WS, "Mmad": Level.L0C, "MmadAcc": Level.L0C, "ZeroL0C": Level.L0C,
          "VBin": Level.UB}  # fmt: skip


def reachable(graph: Graph) -> set[int]:
    seen: set[int] = set()
    stack = [graph.root]
    while stack:
        c = stack.pop()
        if c not in seen:
            seen.add(c)
            stack += [k for n in graph.classes[c] for k in n.children]
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_child_has_an_answer(name):
    graph = graph_of(TRICKY[name])
    assert all(graph.classes.get(c) for n in graph.nodes for c in n.children)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_kept_that_the_outputs_do_not_need(name):
    graph = graph_of(TRICKY[name])
    assert reachable(graph) == {n.cls for n in graph.nodes}


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_numbered_in_their_order(name):
    assert [n.index for n in graph_of(TRICKY[name]).nodes] == list(range(len(graph_of(TRICKY[name]).nodes)))


@pytest.mark.parametrize("name", NAMES)
def test_a_node_answers_a_demand_at_its_own_level(name):
    graph = graph_of(TRICKY[name])
    assert all(graph.demands[n.cls].level is PLACED[n.op] for n in graph.nodes if n.op in PLACED)


@pytest.mark.parametrize("name", NAMES)
def test_nodes_of_one_class_answer_one_demand_once(name):
    graph = graph_of(TRICKY[name])
    for nodes in graph.classes.values():
        assert len({(n.op, n.children, n.payload) for n in nodes}) == len(nodes)


def test_a_shared_value_has_half_the_rows_on_each_core():
    graph = graph_of(TRICKY["one_value_two_tensors"])
    assert {w.shape for w in graph.demands.values() if w.share == 0} == {(32, 128)}
