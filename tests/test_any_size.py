"""No size is special: at random sizes and tiles every schedule that the search keeps computes what the kernel means."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tile_eg.chips import known_chips
from tile_eg.frontend.text import load_text
from tile_eg.inputs import draw
from tile_eg.report.compare import compare
from tile_eg.search.alike import copied
from tile_eg.search.compiler import expected, lower

EXAMPLES = Path(__file__).parent.parent / "examples"
size = st.integers(1, 200)
tile = st.sampled_from([16, 32, 40, 64, 128])
GEMM = {"M": size, "N": size, "K": size, "BM": tile, "BN": tile, "BK": tile}
SIZES = {
    "vector_add": {"M": size, "N": size, "BM": st.integers(1, 64), "BN": st.integers(1, 128)},
    "gemm": GEMM,
    "gemm_transposed": GEMM,
    "gemm_exp": {k: GEMM[k] for k in ("M", "N", "K", "BM", "BN")},
    "matmul_add": GEMM,
    "softmax": {"M": size, "N": st.integers(1, 600), "BM": st.integers(1, 32)},
    "online_softmax": {"M": size, "N": st.integers(1, 600), "BM": st.integers(1, 32), "BN": tile},
    "rms_norm": {"M": size, "N": st.integers(1, 600), "BM": st.integers(1, 16)},
    "layer_norm": {"M": size, "N": st.integers(1, 600), "BM": st.integers(1, 16)},
    "gelu_mul": {"M": size, "N": size, "BM": st.integers(1, 64), "BN": st.integers(1, 128)},
    "flash_attention": {"B": st.just(1), "H": st.integers(1, 2), "S": size, "D": st.sampled_from([7, 16, 64, 80]), "BM": tile},
    "flash_attention_causal": {"B": st.just(1), "H": st.just(1), "S": size, "D": st.just(16), "BM": tile, "BN": tile},
    "flash_attention_rows": {"B": st.just(1), "H": st.just(1), "S": size, "D": st.sampled_from([16, 64, 80]), "BN": tile},
}

VARIANTS = {"gemm_exp", "gemm_transposed", "flash_attention_rows", "layer_norm"}
"""Kernels that do little which others do not."""


def check(name: str, data: st.DataObject) -> None:
    sizes = {n: data.draw(s, n) for n, s in SIZES[name].items()}
    kernel = load_text((EXAMPLES / f"{name}.tile").read_text(), f"{name}.tile").instantiate(sizes)
    inputs = draw([t for t in kernel.tensors if not t.output], "uniform", seed=0)
    want = expected(kernel, inputs)
    for candidate in lower(kernel, data.draw(st.sampled_from(known_chips()), "chip")).candidates:
        got = candidate.planned.run(inputs).outputs
        assert [c for c in compare(got, want) if not c.good] == []


SETTINGS = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SIZES.keys() - VARIANTS))
@settings(SETTINGS, max_examples=2)
@given(data=st.data())
def test_every_schedule_kept_computes_the_meaning(name: str, data: st.DataObject) -> None:
    check(name, data)


@pytest.mark.long
@pytest.mark.parametrize("name", SIZES)
@settings(SETTINGS, max_examples=5)
@given(data=st.data())
def test_every_schedule_kept_computes_the_meaning_at_more_sizes(name: str, data: st.DataObject) -> None:
    check(name, data)


def test_what_a_comparison_copies_goes_by_the_stores_that_loops_do():
    text = """
kernel k[M=32](X: f32[M, 8]) -> Y: f32[M, 8], Z: f32[2] {
  grid b = 2
  shared x: f32[1, 8], z: f32[1]
  z = 0
  for i in serial(16) {
    x = X[b*16 + i, 0]
    Y[b*16 + i, 0] = x
  }
  Z[b] = z
}
"""
    assert copied(load_text(text).instantiate()) == 2 * (16 * 32 * 8 + 2)
