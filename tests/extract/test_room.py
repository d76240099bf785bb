"""What cannot be carried out in any order is in the solver's model: it proposes no choice that is refused for it."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.extract.kernels import CHIP, graph_of, pricer
from tests.extract.test_rows_that_stay import THRICE, TWICE
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Extraction, Overflow, Refused
from tile_eg.extract.beam import Beam
from tile_eg.extract.chaos import Random
from tile_eg.extract.exact import Exact
from tile_eg.extract.model import slot_bytes
from tile_eg.extract.needs import needs_of, read_too_late
from tile_eg.extract.room import overfull
from tile_eg.ops.types import Level

EXAMPLES = Path(__file__).parents[2] / "examples"
FLASH = (EXAMPLES / "flash_attention.tile").read_text()
ROWS = """
kernel rows[M=64, N=1024](X: f32[M, N], Z: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, 16)
  shared x: f32[16, N], z: f32[16, N], y: f32[16, N]
  x = X[bx*16, 0]
  z = Z[bx*16, 0]
  y = exp(x) + tanh(z)
  Y[bx*16, 0] = y * x + z
}
"""

READ_TWICE = TWICE.replace("rowsum(x)", "rowsum(exp(x * 2) * x)")
UB = CHIP.memories[Level.UB]
TINY = replace(CHIP, memories={**CHIP.memories, Level.UB: replace(UB, bytes=UB.bytes - UB.usable + 32)})


def test_tiles_that_fit_in_no_order_are_refused_without_a_choice() -> None:
    graph = graph_of(ROWS.replace("16", "64"))
    found = Exact().extract(graph, CHIP, pricer(graph), 3)
    assert (found.solves, found.refused, found.schedules, found.gave_up) == (1, [], [], False)


def test_tiles_that_fit_are_found_without_a_refusal() -> None:
    graph = graph_of(ROWS)
    found = Exact().extract(graph, CHIP, pricer(graph), 3)
    assert found.schedules
    assert found.refused == []


def test_nothing_is_full_where_all_values_together_fit() -> None:
    assert list(overfull(graph_of(ROWS.replace("16", "2")), CHIP, slot_bytes)) == []


ROOM = Refused("room", "too large", overflow=Overflow("UB", 1, ()))
ORDER = Refused("order", "a buffer is handed over twice")


@pytest.mark.parametrize(
    ("refused", "constraints", "in_vain"),
    [([ROOM], 10**6, True), ([ROOM], 100, False), ([ROOM, ORDER], 10**6, False), ([], 10**6, False)],
)
def test_a_large_model_is_left_once_its_choices_have_no_room(refused: list[Refused], constraints: int, in_vain: bool) -> None:
    model: Any = SimpleNamespace(cp=SimpleNamespace(proto=SimpleNamespace(constraints=range(constraints))))
    found = Extraction([], [(1.0, r) for r in refused], "exact", solves=1)
    assert Exact()._in_vain(model, found) is in_vain


def _counted(graph: Graph, chosen: set[Node]) -> list[int]:
    """What is counted in UB while each instruction of a choice runs."""
    used = {n.cls for n in chosen}
    live = lambda v: v.always or {*v.readers} & chosen or {*v.classes} & used  # noqa: E731
    full = [f for f in overfull(graph, TINY, slot_bytes) if f.node in chosen and f.limit == 32]
    return [f.own + sum(v.bytes for v in f.live if live(v)) for f in full]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("text", [ROWS, TWICE, THRICE, READ_TWICE], ids=["rows", "twice", "thrice", "read twice"])
@pytest.mark.parametrize("seed", range(2))
def test_no_schedule_takes_less_than_what_is_counted(text: str, seed: int) -> None:
    graph = graph_of(text)
    for schedule in Random(seed).extract(graph, CHIP, pricer(graph), 4).schedules:
        assert 0 < max(_counted(graph, {*schedule.nodes})) <= schedule.peaks[Level.UB]


@pytest.mark.parametrize("op", ["Stays", "Keep"])
def test_what_a_loop_holds_counts_beside_what_runs_in_it(op: str) -> None:
    graph = graph_of(THRICE)
    held = [f for f in overfull(graph, TINY, slot_bytes) if any(m.op == op for v in f.live for m in v.readers)]
    assert held
    assert all(f.node.region for f in held)


@pytest.mark.slow
def test_a_state_is_not_read_behind_what_takes_its_place() -> None:
    graph = graph_of(FLASH)
    assert any(nodes[0].op == "NextIn" for nodes in read_too_late(graph))
    assert not any(r.kind == "cycle" for _, r in Exact().extract(graph, CHIP, pricer(graph), 4).refused)


def test_every_schedule_computes_what_is_needed_in_all_ways() -> None:
    graph = graph_of(FLASH)
    needed = needs_of(graph).of_class[graph.root]
    for schedule in Exact().extract(graph, CHIP, pricer(graph), 4).schedules:
        assert {c for c in graph.classes if needed >> c & 1} <= {n.cls for n in schedule.nodes}


@pytest.mark.slow
def test_the_beam_makes_no_schedule_of_what_is_read_too_late() -> None:
    found = Beam().extract(graph_of(FLASH), CHIP, pricer(graph_of(FLASH)), 1)
    assert found.schedules
    assert "VBin -> VBin" not in {r.what for _, r in found.refused}


def test_the_beam_gives_up_behind_its_refusals() -> None:
    graph = graph_of(ROWS.replace("16", "64"))
    assert len(Beam(refusals=3).extract(graph, CHIP, pricer(graph), 1).refused) == 3


@pytest.mark.slow
def test_no_choice_is_refused_for_what_stays_and_what_is_kept() -> None:
    """Tiles of 48 whole rows stay, or fit beside what loops compute, on one vector core; not both."""
    large = {"M=5, N=192, BN=64": "M=256, N=1024, BN=512", "bx = M": "bx = ceildiv(M, 48)", "[1": "[48", "[bx,": "[bx*48,"}
    graph = graph_of(reduce(lambda text, change: text.replace(*change), large.items(), THRICE))
    found = Exact().extract(graph, CHIP, pricer(graph), 4)
    assert len(found.schedules) >= 4
    assert not found.gave_up
    assert not [r for _, r in found.refused if r.kind == "capacity"]
