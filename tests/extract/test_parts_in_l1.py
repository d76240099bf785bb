"""A part of a tile that is in L1 serves a product as it lies there: columns, rows, either way round, in every choice."""

from __future__ import annotations

import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import graph_of, kernel
from tests.rules.test_implements import Using
from tile_eg.extract.chaos import Random, Worst

ATTENTION = """
kernel parts[M=32, S=90, W=96, N=48](Q: f16[M, W], X: f16[S, W]) -> O: f32[M, {width}] {{
  grid bx = 1
  shared   q: f16[M, W], x: f16[N, W], v: f16[{rows}, {cols}], p: f16[M, {depth}]
  fragment s: f32[M, N], o: f32[M, {width}] = 0
  q = Q[0, 0]
  for j in pipelined(ceildiv(S, N)) {{
    x = X[j*N, 0]
    s = q @ x.T
    p = {left}
    v = X[j*N : min(S, j*N + {rows}), {first} : {first} + {cols}]
    o += {product}
  }}
  O[0, 0] = o
}}
"""
COLUMNS = ATTENTION.format(width=64, rows="N", cols=64, depth="N", left="s", first=16, product="p @ v")
TURNED = ATTENTION.format(width="N", rows="N", cols=32, depth=32, left="Q[0, 64]", first=48, product="p @ v.T + s")
TURNED = TURNED.replace("S=90", "S=96")
GATHERED = """
kernel gathered[M=16, S=200, K=70, W=80, N=32](Q: f16[M, W], X: f16[S, W], at: i32[K]) -> O: f32[M, 48] {
  grid bx = 1
  shared   q: f16[M, W], x: f16[N, W], p: f16[M, N]
  fragment s: f32[M, N], o: f32[M, 48] = 0
  q = Q[0, 0]
  for j in pipelined(ceildiv(K, N)) {
    parallel (i, d) in (N, W) { x[i, d] = X[at[j*N + i], d] }
    s = q @ x.T
    p = s
    o += p @ x[:, 32:80]
  }
  O[0, 0] = o
}
"""
ROWS = """
kernel rows[M=32, N=64, W=64](Q: f16[M, W], X: f16[N, W]) -> (S: f32[M, N], O: f32[M, 32]) {
  grid bx = 1
  shared q: f16[M, W], x: f16[N, W], below: f16[32, W]
  q = Q[0, 0]
  x = X[0, 0]
  below = X[32, 0]
  S[0, 0] = q @ x.T
  O[0, 0] = q @ below.T
}
"""
KEPT = """
kernel kept[M=32, N=64, W=64](Q: f16[4, M, W], X: f16[N, W]) -> (S: f32[4, M, N], O: f32[4, M, 32]) {
  grid bx = 1
  shared q: f16[M, W], x: f16[N, W], some: f16[N, 32]
  for t in serial(4) {
    q = Q[t, 0, 0]
    x = X[0, 0]
    some = X[0 : N, 32 : 64]
    S[t, 0, 0] = q @ x.T
    O[t, 0, 0] = q @ some
  }
}
"""
TEXTS = {"columns": COLUMNS, "turned": TURNED, "gathered": GATHERED, "rows": ROWS, "kept": KEPT}


def parts_in(text: str) -> list[tuple[int, int]]:
    """Where parts begin that are offered: row and column of the whole."""
    return [n.payload[:2] for n in graph_of(text).nodes if n.op == "Part"]


@pytest.mark.few(2)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", TEXTS)
def test_a_product_reads_a_part_where_it_lies(name: str) -> None:
    check_numbers(kernel(TEXTS[name]), Using("l1-part"))


@pytest.mark.few(8)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", [Worst(), *(Random(s) for s in range(3))], ids=["worst", "random0", "random1", "random2"])
@pytest.mark.parametrize("name", TEXTS)
def test_every_choice_beside_it_computes_the_same(name: str, extractor) -> None:
    check_numbers(kernel(TEXTS[name]), extractor)


@pytest.mark.slow
def test_a_part_begins_at_its_row_and_column() -> None:
    assert parts_in(COLUMNS) == [(0, 16)] and parts_in(ROWS) == [(32, 0)]


@pytest.mark.parametrize(
    "text",
    [
        COLUMNS.replace("16 : 16 + 64", "8 : 8 + 64"),  # begins inside of a fractal
        ROWS.replace("X[32, 0]", "X[48 : 64, :]").replace("N=64", "N=56"),  # ends behind the tile
    ],
)
def test_what_begins_or_ends_elsewhere_is_loaded(text: str) -> None:
    assert parts_in(text) == []
