"""Tiling of products: each form of a loop, and both ways to have a long product, in numbers, for drawn sizes and tails."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.rules.claims import untrue
from tests.rules.fact_kernels import product
from tests.rules.worlds import World, changed, world
from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.kernel import Kernel
from tile_eg.rules import registry

FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink))
EITHER = st.booleans()
LOOP = st.fixed_dictionaries(
    {
        "M": st.integers(1, 40),
        "N": st.integers(1, 40),
        "K": st.integers(17, 140),
        "BM": st.just(16),
        "BN": st.just(32),
        "BK": st.just(16),
    }
)
LONG = """
kernel long[M={M}, N={N}, K={K}](A: f16[M, K], B: f16[{b}]) -> C: f32[M, N] {{
  grid bx = ceildiv(M, 16)
  shared a: f16[16, K], b: f16[{b}]
  a = A[bx*16, 0]
  b = B[0, 0]
  C[bx*16, 0] = a @ {product}
}}
"""
HALVES = st.fixed_dictionaries({"M": st.integers(1, 40), "N": st.integers(1, 20), "K": st.sampled_from((256, 288, 320, 512))})


THREE_TRIPS, TWO_TRIPS = (product(False, False, f"M=16, N=32, K={16 * n}, BM=16, BN=32, BK=16") for n in (3, 2))
SMALL = {"M": 16, "N": 16, "K": 256}


def kernel(text: str) -> Kernel:
    return load_text(text, "drawn.tile").instantiate()


def long_product(transposed: bool, sizes: dict[str, int]) -> World:
    return world(kernel(LONG.format(**sizes, b="N, K" if transposed else "K, N", product="b.T" if transposed else "b")))


@pytest.mark.slow
@FEW
@given(EITHER, EITHER, LOOP)
def test_every_form_of_a_loop_of_products_has_the_same_sums(ta: bool, tb: bool, sizes: dict[str, int]) -> None:
    w = world(kernel(product(ta, tb, ", ".join(f"{k}={v}" for k, v in sizes.items()))))
    assert {"k-tiling", "whole-panels"} & w.matched()
    assert w.differing() == [] and untrue(w) == []


@pytest.mark.slow
def test_two_trips_become_no_loop_and_three_also_a_deeper_one() -> None:
    forms = [world(kernel(text)).matched() & {"k-tiling", "whole-panels"} for text in (TWO_TRIPS, THREE_TRIPS)]
    assert forms == [{"whole-panels"}, {"k-tiling", "whole-panels"}]


@pytest.mark.slow
@FEW
@given(EITHER, HALVES)
def test_a_product_in_two_halves_has_the_same_sums(transposed: bool, sizes: dict[str, int]) -> None:
    w = long_product(transposed, sizes)
    assert ("product-in-two-tb" if transposed else "product-in-two") in w.matched()
    assert w.differing() == [] and untrue(w) == []


@pytest.mark.slow
@FEW
@given(EITHER, HALVES, st.integers(0, 99))
def test_a_product_in_two_halves_is_within_its_bound(transposed: bool, sizes: dict[str, int], seed: int) -> None:
    w, random = long_product(transposed, sizes), np.random.default_rng(seed)
    w.arrays = {t.name: random.normal(size=t.shape).astype(numpy_dtype(t.dtype)) for t in w.kernel.tensors}
    a, b = (np.abs(w.arrays[n].astype(np.float64)) for n in "AB")
    bound = registry()["product-in-two-tb" if transposed else "product-in-two"].within
    assert bound
    most = bound.half_steps(sizes["K"])[0] * 2.0**-24 * (a @ (b.T if transposed else b)).max()
    apart = [n.member(c, m) - n.of(c) for n, c, m in w.terms()]
    assert apart and reduce(max, (np.nanmax(np.abs(x)) for x in apart)) <= most


def test_a_depth_that_does_not_divide_is_not_halved() -> None:
    assert "product-in-two" not in long_product(False, {"M": 16, "N": 16, "K": 280}).matched()


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "old", "new", "text"),
    [
        ("k-tiling", "(Loop d e others)", "(Loop d (- e 1) others)", THREE_TRIPS),
        ("whole-panels", '(Bin "add" i w)', '(Bin "add" w w)', TWO_TRIPS),
        ("product-in-two", "(Load t p s r h i", "(Load t o s r h i", LONG.format(**SMALL, b="K, N", product="b")),
        ("product-in-two-tb", "(Load u w z d h j", "(Load u q z d h j", LONG.format(**SMALL, b="N, K", product="b.T")),
    ],
)
def test_a_wrong_form_is_seen(rule: str, old: str, new: str, text: str) -> None:
    assert world(kernel(text), changed(rule, old, new)).differing()
