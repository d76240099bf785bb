"""What the search model cannot weigh is asked for both ways: each round has its schedules, and no schedule is found twice."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.extract.kernels import CHIP, graph_of, kernel, pricer
from tile_eg.chips import load_chip
from tile_eg.egraph import Node, saturate
from tile_eg.extract import extract
from tile_eg.extract.base import Extraction, decisions
from tile_eg.extract.exact import Exact
from tile_eg.extract.memory import ON_CHIP
from tile_eg.extract.rounds import _made_anew, by_cores, by_decisions, by_forms, may_share, rounds
from tile_eg.frontend.ssa import to_values
from tile_eg.ops.types import F16

EXAMPLES = Path(__file__).parents[2] / "examples"
NORM = (EXAMPLES / "layer_norm.tile").read_text()
KEPT = (EXAMPLES / "rope/rope_halves.tile").read_text()
WINDOW = (EXAMPLES / "attention/sliding_window.tile").read_text()
CAUSAL = (EXAMPLES / "flash_attention_causal.tile").read_text()
GEMM = (EXAMPLES / "gemm.tile").read_text()


@cache
def found(text: str, k: int) -> Extraction:
    graph = graph_of(text)
    return Exact().extract(graph, CHIP, pricer(graph), k)


@pytest.mark.slow
def test_a_kernel_of_vector_cores_is_asked_for_on_one_and_on_two() -> None:
    graph = graph_of(NORM)
    first, *_ = rounds(graph, Extraction([]), 3)
    assert may_share(graph) and (first.most, first.differing) == (2, by_cores)


def test_a_kernel_with_products_has_one_form_of_blocks() -> None:
    graph = graph_of(GEMM)
    asked = list(rounds(graph, Extraction([]), 3))
    assert not may_share(graph) and [(r.most, r.differing) for r in asked] == [(3, by_forms)]


@pytest.mark.slow
def test_behind_one_schedule_of_each_form_any_decision_may_differ() -> None:
    *_, last = rounds(graph_of(NORM), found(NORM, 2), 9)
    assert (last.most, last.differing) == (9, by_decisions)


def test_behind_a_schedule_of_the_one_form_that_there_is_any_decision_may_differ() -> None:
    *_, last = rounds(graph_of(NORM), found(NORM, 1), 9)
    assert len(found(NORM, 1).schedules) == 1 and (last.most, last.differing) == (9, by_decisions)


@pytest.mark.parametrize("text", [NORM, GEMM], ids=["layer_norm", "gemm"])
def test_no_schedule_is_found_twice(text: str) -> None:
    chosen = [(decisions(s.nodes), s.loops) for s in found(text, 3).schedules]
    assert len(chosen) > 1 and all(a != b for n, a in enumerate(chosen) for b in chosen[:n])


def test_of_each_form_one_takes_less_room() -> None:
    sparing = [any(n.op == "VRedMul" for n in s.nodes) for s in found(NORM, 3).schedules]
    assert {True, False} == {*sparing}


@pytest.mark.slow
def test_of_two_ways_that_take_as_long_the_one_that_fills_less_is_taken() -> None:
    graph, chosen = graph_of(WINDOW), found(WINDOW, 1).schedules[0].nodes
    assert {graph.demands[n.cls].tile.dtype for n in chosen if n.op == "VRamp"} == {F16}


def crowded(*nodes: Node, by: int) -> Extraction:
    """A schedule of these nodes whose values share places, so many times."""
    return Extraction([SimpleNamespace(nodes=list(nodes), crowded=by)])  # type: ignore[list-item]


def test_what_a_loop_keeps_is_asked_for_anew_where_places_are_short() -> None:
    graph = graph_of(KEPT)
    kept, store = ([n for n in graph.nodes if n.op == op] for op in ("Keep", "UBToGM"))
    asked = list(_made_anew(graph, crowded(kept[0], store[0], by=len(ON_CHIP) + 1)))
    assert [set(r.none_of) for r in asked] == [set(kept)] and store[0] in asked[0].each
    assert not list(_made_anew(graph, crowded(kept[0], store[0], by=len(ON_CHIP))))
    assert not list(_made_anew(graph, crowded(store[0], by=len(ON_CHIP) + 1)))


@pytest.mark.slow
def test_a_first_product_that_waits_for_the_vector_cores_is_asked_for_without_as_well() -> None:
    """The scaled queries come from the vector cores, so that no loop could go on from tile to tile."""
    chip = load_chip("950")
    asked = extract(saturate(to_values(kernel(CAUSAL)), chip), chip, k=4).schedules
    assert {True, False} == {any(n.op == "GmToUB" for n in s.nodes) for s in asked}
