"""Graphs go out to the extractors of others and come in from theirs, and a choice made elsewhere can be compiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.explore.kernels import EXAMPLES, kernel, lowered
from tile_eg.cli.app import run
from tile_eg.errors import TileError
from tile_eg.explore.gym import exported, extracted
from tile_eg.extract import EXTRACTORS
from tile_eg.extract.gym import node_id
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

SHARED: dict[str, Any] = {
    "nodes": {
        "root": {"op": "f", "children": ["a1", "b1"], "eclass": "r", "cost": 1.0},
        "a1": {"op": "g", "children": ["s"], "eclass": "a", "cost": 1.0},
        "a2": {"op": "x", "children": [], "eclass": "a", "cost": 6.0},
        "b1": {"op": "h", "children": ["s"], "eclass": "b", "cost": 1.0},
        "b2": {"op": "y", "children": [], "eclass": "b", "cost": 6.0},
        "s": {"op": "s", "children": [], "eclass": "s", "cost": 8.0},
    },
    "root_eclasses": ["r"],
}
"""Both `a` and `b` are cheapest as leaves, by themselves; together they are cheapest with the part that they share."""


def chosen(graph: dict[str, Any], extractor: str = "exact") -> dict[str, str]:
    return json.loads(extracted(json.dumps(graph), "g.json", extractor).choices())["choices"]


def test_the_exact_extractor_counts_what_is_shared_once() -> None:
    assert chosen(SHARED) == {"r": "root", "a": "a1", "b": "b1", "s": "s"}


def test_the_greedy_extractor_looks_at_each_class_by_itself() -> None:
    assert chosen(SHARED, "greedy") == {"r": "root", "a": "a2", "b": "b2"}


def test_costs_are_told_as_a_graph_and_as_a_tree() -> None:
    found = extracted(json.dumps(SHARED), "g.json")
    assert (found.cost, found.tree) == (11.0, 19.0)


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_every_extractor_runs_on_a_graph_with_a_cycle(extractor: str) -> None:
    graph = {
        "nodes": {
            "0": {"op": "f", "children": ["1"], "eclass": "0"},
            "1": {"op": "g", "children": ["0"], "eclass": "1", "cost": 0.5},
            "2": {"op": "x", "eclass": "1", "cost": 2.5},
        },
        "root_eclasses": ["0"],
    }
    assert chosen(graph, extractor) == {"0": "0", "1": "2"}


def test_several_roots_are_all_reached() -> None:
    assert set(chosen(SHARED | {"root_eclasses": ["a", "b"]})) == {"a", "b", "s"}


def test_worst_costs_most_and_exact_least() -> None:
    costs = {e: extracted(json.dumps(SHARED), "g.json", e).cost for e in EXTRACTORS}
    assert max(costs.values()) == costs["worst"]
    assert min(costs.values()) == costs["exact"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"root_eclasses": []}, "names no root"),
        ({"root_eclasses": ["z"]}, "root class 'z' has no node"),
        ({"nodes": {"a": {"op": "x", "children": ["q"], "eclass": "r"}}}, "has a child 'q'"),
        ({"nodes": {"a": {"children": [], "eclass": "r"}}}, "has no op"),
        ({"nodes": {"a": {"op": "x", "eclass": "r", "cost": -1}}}, "costs -1"),
        ({"nodes": {"a": {"op": "x", "children": ["a"], "eclass": "r"}}}, "no finite choice"),
        ({"nodes": []}, "holds no graph"),
    ],
)
def test_a_file_that_is_no_graph_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(TileError, match=words):
        extracted(json.dumps(SHARED | change), "g.json")


def test_what_is_no_json_is_told_with_its_line() -> None:
    with pytest.raises(TileError, match="in line 2"):
        extracted("{\n nodes", "g.json")


@pytest.mark.slow
def test_an_exported_graph_keeps_to_the_format() -> None:
    graph = json.loads(exported(lowered("gemm")))
    for node in graph["nodes"].values():
        assert set(node) == {"op", "children", "eclass", "cost"}
        assert all(c in graph["nodes"] for c in node["children"])
    assert {n["eclass"] for n in graph["nodes"].values()} >= set(graph["root_eclasses"])


@pytest.mark.slow
def test_one_kernel_is_exported_the_same_each_time() -> None:
    assert exported(lower(kernel("softmax"))) == exported(lower(kernel("softmax")))


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", ["exact", "greedy"])
@pytest.mark.parametrize("name", ["softmax", "matmul_add", "gelu_mul", "online_softmax", "flash_attention"])
def test_a_choice_by_one_cost_a_node_in_our_exported_graph_compiles(name: str, extractor: str, tmp_path: Path) -> None:
    (tmp_path / "choice.json").write_text(extracted(exported(lowered(name)), "g.json", extractor).choices())
    made = lower(kernel(name), search=search_options(effort="none", extractor=f"choices={tmp_path / 'choice.json'}"))
    assert made.extraction.extractor == "choices"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemm", "flash_attention"])
def test_the_schedule_that_was_found_is_left_in_the_exported_graph(name: str) -> None:
    ids = json.loads(exported(lowered(name)))["nodes"].keys()
    assert ids >= {node_id(n) for n in lowered(name).extraction.best.nodes}


@pytest.mark.slow
def test_the_whole_graph_is_exported_on_request() -> None:
    made = lowered("gemm")
    assert len(json.loads(exported(made, whole=True))["nodes"]) == len(made.extraction.best.graph.nodes)


@pytest.mark.slow
def test_a_choice_for_another_kernel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "choice.json").write_text(extracted(exported(lowered("softmax")), "g.json").choices())
    with pytest.raises(TileError, match="export the same kernel"):
        lower(kernel("gemm"), search=search_options(extractor=f"choices={tmp_path / 'choice.json'}"))


@pytest.mark.slow
def test_a_choice_that_is_no_schedule_is_refused_with_the_reason(tmp_path: Path) -> None:
    """One cost a node knows nothing of the order that a whole schedule needs."""
    graph = exported(lowered("flash_attention"), whole=True)
    (tmp_path / "choice.json").write_text(extracted(graph, "g.json", "random").choices())
    with pytest.raises(TileError, match="is not a legal schedule"):
        lower(kernel("flash_attention"), search=search_options(extractor=f"choices={tmp_path / 'choice.json'}"))


@pytest.mark.slow
def test_export_and_extract_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(EXAMPLES / "softmax.tile"), "-o", str(tmp_path / "g.json")]) == 0
    assert run(["extract", str(tmp_path / "g.json"), "-o", str(tmp_path / "c.json")]) == 0
    assert "chosen" in capsys.readouterr().out
    choices = f"choices={tmp_path / 'c.json'}"
    assert run(["run", str(EXAMPLES / "softmax.tile"), "--extractor", choices]) == 0
    assert "simulator: good" in capsys.readouterr().out
