"""No two rows of the table of decisions read alike, nor do two ways to decide one thing."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tile_eg.extract.schedule import Schedule
from tile_eg.frontend.text import load_text
from tile_eg.report.decisions import choices, difference, option
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
    assert [row for row, n in Counter((name, gives) for name, _, gives in moves).items() if n > 1] == []


def test_alternatives_name_a_decision_as_the_table_does() -> None:
    found = lower(load_text((EXAMPLES / "gelu_mul.tile").read_text()).instantiate({}))
    best, *others = [c.schedule for c in found.candidates]
    told = {line.partition(": ")[0] for other in others for line in difference(other, best).splitlines()}
    assert told and told <= {about for _, about, _, _ in choices(best)}
