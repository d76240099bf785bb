"""Values of any size, with numbers for their sizes, are found to be those of the kernel at these sizes without running either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir import arithmetic as ar
from tile_eg.ir.index import BLOCK, read, var
from tile_eg.ir.same_values import same_values
from tile_eg.ir.values import Term, Values
from tile_eg.search.alike import values_of_any_size
from tile_eg.transforms.any_size import at

GEMM = load_text("""
kernel gemm[M: dyn, K: dyn, BM=16, BK=16](A: f16[M, K], W: f16[32, K]) -> C: f16[M, 32] {
  grid bx = ceildiv(M, BM)
  shared   a: f16[BM, BK], w: f16[32, BK]
  fragment c: f32[BM, 32] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    w = W[0, k*BK]
    c += a @ w.T
  }
  C[bx*BM, 0] = c
}
""")
SIZES = {"M": 96, "K": 80}


def own(sizes: Mapping[str, int] = SIZES) -> Values:
    return to_values(GEMM.instantiate(sizes))


@cache
def of_any_size() -> Values:
    found = values_of_any_size(lambda sizes: GEMM.instantiate(sizes), {"M": 256, "K": 256})
    assert isinstance(found, Values)
    return found


def rewritten(values: Values, change: Mapping[str, object]) -> Values:
    """The values with the stored tile's fields changed."""
    store = values.outputs[0]
    version, offset, stride, tile = store.args
    return replace(values, outputs=(Term("store", (version, offset, stride, replace(tile, **change))),))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [SIZES, {"M": 90, "K": 75}], ids=["whole tiles", "short tiles"])
def test_values_at_sizes_are_those_of_the_kernel_there(sizes: dict[str, int]) -> None:
    assert same_values(own(sizes), at(of_any_size(), sizes))


def test_with_more_blocks_and_trips_than_are_gone_through_they_are_seen_to_be_the_same_by_their_form() -> None:
    many = {"M": 16 * 1000, "K": 16 * 1000}
    assert same_values(own(many), at(of_any_size(), many))
    assert not same_values(own(many), at(of_any_size(), {**many, "K": 16 * 1000 - 1}))


def test_values_at_other_sizes_are_others() -> None:
    assert not same_values(own(), at(of_any_size(), {"M": 96, "K": 96}))


def test_expressions_are_the_same_that_have_one_value_in_every_block() -> None:
    block = var(BLOCK)
    assert same_values(own(), rewritten(own(), {"vrows": (block + 96) // 96 * 16}))  # 6 blocks: 1 in each of them
    assert not same_values(own(), rewritten(own(), {"vrows": (block + 91) // 96 * 16}))


def test_what_an_input_decides_is_not_compared_by_value() -> None:
    number = read("A", var(BLOCK), 16)
    assert not same_values(own(), rewritten(own(), {"vrows": number}))


def test_terms_of_two_builders_are_compared_by_what_they_are() -> None:
    one, other = own(), own()
    assert not set(one.outputs) & set(other.outputs)
    assert same_values(one, other)


@pytest.mark.parametrize("shape", [(64, 128, 130), (100, 700, 30), (3, 5, 7), (1, 70000, 16)])
def test_a_product_in_parts_is_the_product(shape: tuple[int, int, int]) -> None:
    rows, depth, cols = shape
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (rows, depth)).astype(np.float32), rng.integers(-9, 9, (depth, cols)).astype(np.float32)
    assert np.array_equal(ar.product(a, b), a @ b)
    assert np.array_equal(ar.product(np.asfortranarray(a), b.T.copy().T), a @ b)
