"""Sums of wide products over trips, in column parts: the same numbers, or none where a sum is needed as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import Values, reachable
from tile_eg.search.compiler import lower
from tile_eg.transforms.sums_in_columns import with_sums_in_columns

EXAMPLES = Path(__file__).parents[2] / "examples"
ATTENTION = {"S": 100, "H": 1, "D": 64, "BM": 32, "BN": 32}
LATENT = {"B": 1, "H": 16, "S": 100, "C": 64, "R": 16, "BM": 16, "BN": 32}


SUMS = """
kernel sums[M=16, N=64, K=64, BK=32](A: f16[M, K], B: f16[K, N], D: f16[K, N]) -> C: f32[M, N] {{
  grid bx = 1
  shared a: f16[M, BK], b: f16[BK, N], d: f16[BK, N]
  fragment o: f32[M, N] = 0
  for k in pipelined(ceildiv(K, BK)) {{
    a = A[0, k*BK]
    b = B[k*BK, 0]
    d = D[k*BK, 0]
{}
  }}
  C[0, 0] = o
}}
"""


def sums(*statements: str) -> Values:
    """Of a kernel whose loop has these statements about `o` and the loaded `a`, `b` and `d`."""
    return to_values(kernel(SUMS.format("\n".join(statements))))


def example(name: str, **sizes: int):
    return kernel((EXAMPLES / f"{name}.tile").read_text("utf-8"), **sizes)


def products(values: Values | None) -> list[tuple[int, int]]:
    assert values is not None
    return sorted((t.rows, t.cols) for t in reachable(values) if t.op == "matmul")


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize(("name", "sizes"), [
    ("flash_attention", ATTENTION), ("flash_attention_causal", ATTENTION), ("attention/mla_decode", LATENT)])  # fmt: skip
def test_sums_in_parts_are_the_same_numbers(name: str, sizes: dict[str, int], parts: int) -> None:
    k = example(name, **sizes)
    arrays, values = arrays_for(k), to_values(k)
    parted = with_sums_in_columns(values, parts)
    assert parted is not None
    for tensor, want in run_values(values, arrays).items():
        np.testing.assert_allclose(run_values(parted, arrays)[tensor], want, rtol=1e-3, atol=1e-5)


def test_each_part_has_a_product_of_its_own() -> None:
    values = to_values(example("flash_attention", **ATTENTION))
    assert products(values) == [(32, 32), (32, 64)]
    assert products(with_sums_in_columns(values, 2)) == [(32, 32)] * 3


def test_keys_that_are_values_too_are_loaded_in_parts_once() -> None:
    parted = with_sums_in_columns(to_values(example("attention/mla_decode", **LATENT)), 2)
    assert products(parted) == [(16, 32)] * 5  # of queries, in two depths and one of their other part, and of probabilities
    assert not [t for t in reachable(parted) if t.op == "load" and t.cols == LATENT["C"]]


def test_a_sum_that_stays_in_l0c_stays_whole() -> None:
    assert with_sums_in_columns(to_values(example("gemm", M=64, N=64, K=64, BM=32, BN=64, BK=32)), 2) is None


def test_a_sum_of_two_products_that_stays_in_l0c_stays_whole() -> None:
    assert with_sums_in_columns(sums("o += a @ b", "o += a @ d"), 2) is None
    assert products(with_sums_in_columns(sums("o = o * 0.5 + a @ b", "o += a @ d"), 2)) == [(16, 32)] * 4


def test_what_is_made_of_the_same_tile_again_and_again_is_looked_at_once() -> None:
    assert products(with_sums_in_columns(sums("o = o * 0.5 + a @ b", *["o = o * o"] * 60), 2)) == [(16, 32)] * 2


def test_narrow_results_stay_whole() -> None:
    assert with_sums_in_columns(to_values(example("flash_attention", **ATTENTION)), 2, beyond=4 * 32 * 64) is None


def test_parts_are_whole_fractals() -> None:
    assert with_sums_in_columns(to_values(example("flash_attention", **ATTENTION)), 8) is None


@pytest.mark.slow
def test_heads_of_256_have_sums_and_products_in_parts() -> None:
    k = example("flash_attention", S=256, H=1, D=256, BM=128, BN=128)
    low = lower(k, "910B2")
    assert low.form.moves[:1] == ("sums-in-columns 2",)
    assert not low.ranked[0].planned.run(arrays_for(k)).findings
