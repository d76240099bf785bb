"""No two rows of the table of decisions read alike, nor do two ways to decide one thing."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tile_eg.extract.schedule import Schedule
from tile_eg.frontend.text import load_text
from tile_eg.ops.types import Level
from tile_eg.report.decisions import choices, decisions_text, option
from tile_eg.report.differences import difference, differences
from tile_eg.report.schedule_tree import LEGEND, schedule_text
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("flash_attention", "layer_norm", "gemm", "rope/qkv_rope", "layout/conv2d", "scans/cumsum_rows")


@cache
def schedule(name: str) -> Schedule:
    return lower(load_text((EXAMPLES / f"{name}.tile").read_text()).instantiate({})).candidates[0].schedule


@pytest.mark.few(3)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", NAMES)
def test_each_decision_is_about_something_of_its_own(name: str) -> None:
    rows = Counter(about for _, about, _, _ in choices(schedule(name)))
    assert [about for about, n in rows.items() if n > 1] == []


@pytest.mark.slow(but=0)
@pytest.mark.parametrize("name", NAMES)
def test_what_was_chosen_reads_otherwise_than_what_was_not(name: str) -> None:
    chosen, graph = schedule(name), schedule(name).graph
    others = ((n, m) for n in chosen.nodes for m in graph.classes[n.cls] if (m.op, m.payload) != (n.op, n.payload))
    assert [(n.op, option(m, graph)) for n, m in others if option(m, graph) == option(n, graph)] == []


GATED = """
kernel gated[M=512, N=1024, K=512](A: f16[M, K], B: f16[K, N], D: f16[K, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, 128), ceildiv(N, 128))
  shared   a: f16[128, 64], b: f16[64, 128], d: f16[64, 128]
  fragment g: f32[128, 128] = 0, u: f32[128, 128] = 0
  for k in pipelined(ceildiv(K, 64)) {
    a = A[bx*128, k*64]
    b = B[k*64, by*128]
    d = D[k*64, by*128]
    g += a @ b
    u += a @ d
  }
  C[bx*128, by*128] = g / (1 + exp(-g)) * u
}
"""


@pytest.mark.slow
def test_moves_that_gave_the_same_stand_in_one_row() -> None:
    moves = lower(load_text(GATED).instantiate({})).explanation.moves
    assert {name for name, *_ in moves} >= {"persistent-grid", "packed-operand"}
    assert [row for row, n in Counter((name, form, gives) for name, _, form, gives in moves).items() if n > 1] == []


@cache
def gelu() -> list[Schedule]:
    made = load_text((EXAMPLES / "gelu_mul.tile").read_text()).instantiate({})
    return [c.schedule for c in lower(made, search=search_options(without=("blocks-together",))).candidates]


def test_alternatives_name_a_decision_as_the_table_does() -> None:
    best, *others = gelu()
    told = {line.partition(": ")[0] for other in others for line in difference(other, best).splitlines()}
    assert told and told <= {about for _, about, _, _ in choices(best)}


@cache
def norm() -> Schedule:
    text = """
kernel norm[M=64, N=64](X: f16[M, N], W: f16[N], B: f16[N]) -> Y: f16[M, N] {
  Y = X * W + B
}
"""
    return lower(load_text(text).instantiate({})).candidates[0].schedule


@pytest.mark.slow
def test_a_value_is_not_named_after_another_one_of_its_line() -> None:
    """The loads of a kernel of whole tensors all stand on its first line."""
    schedule = norm()
    casts = [step for step, _ in schedule.walk() if step.node.op == "VCast" and step.node.payload[-1] == "f32"]
    names = [(schedule.storages[c.dst].name, schedule.storages[c.srcs[0]].name) for c in casts]
    assert len(names) == 3 and all(mine == read for mine, read in names)


def test_every_name_of_the_tree_is_of_one_storage() -> None:
    """A buffer of the source may be called as the second one of another buffer would be."""
    first, second, third = ((n, SimpleNamespace(name=name, level=Level.UB)) for n, name in enumerate(("x", "x", "x2")))
    held: Any = SimpleNamespace(storages=dict((first, second, third)))
    assert Schedule.labels.func(held) == {0: "x", 1: "x3", 2: "x2"}  # type: ignore[attr-defined]


def test_a_number_behind_a_number_stands_apart() -> None:
    held: Any = SimpleNamespace(storages={n: SimpleNamespace(name="t_7", level=Level.UB) for n in range(2)})
    assert Schedule.labels.func(held) == {0: "t_7", 1: "t_7_2"}  # type: ignore[attr-defined]


@pytest.mark.slow
def test_parts_of_names_that_only_the_table_of_decisions_has_are_explained_below_it() -> None:
    gemm = schedule("gemm")
    table = decisions_text(gemm)
    assert "UBToGM/rows" in table and table.splitlines()[-1] == LEGEND["/rows"]
    assert LEGEND["/rows"] not in schedule_text(gemm)


def test_schedules_that_differ_from_the_best_alike_say_what_they_are_unlike_in() -> None:
    best, *others = gelu()
    told = differences([("that of 9 us", others[0]), ("that of 9.1 us", others[0])], best)
    assert told[1].startswith(told[0] + "\nunlike that of 9 us\n")
