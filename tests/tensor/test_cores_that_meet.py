"""Functions of whole tensors whose cores meet: sums over all rows in parts, and what waits for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

M, N = 403, 333
Rows = T.Tensor((M, N), "float32")


@tile_eg.jit
def shares(X: Rows):
    share = X / np.sum(X, axis=1, keepdims=True)
    return share, np.sum(share, axis=0)


@tile_eg.jit
def quantised(X: T.Tensor((M, N), "float16")):
    scale = np.max(np.abs(X)) / 127
    return np.round(X / scale).astype("int8"), scale


@tile_eg.jit
def less_the_mean(X: Rows):
    return X - np.mean(X), np.max(X * 2, axis=0), np.sum(X)


def drawn(kernel: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.uniform(0.5, 1, t.shape).astype(t.dtype.numpy) for t in kernel.kernel.tensors if not t.output]


def phases(kernel: Any) -> int:
    return kernel.kernel_source.count("SyncAll") // 2 + 1


@pytest.mark.slow
def test_a_loop_that_sums_stores_as_well() -> None:
    (x,) = drawn(shares)
    got, sums = shares(x)
    want = x / x.sum(1, keepdims=True, dtype=np.float64)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(sums, want.sum(0), rtol=1e-5)
    assert phases(shares) == 2


@pytest.mark.slow
def test_what_all_blocks_wait_for_is_stored_by_one() -> None:
    (x,) = drawn(quantised)
    whole, scale = quantised(x)
    assert np.isclose(float(scale.item()), np.abs(x).max() / 127, rtol=1e-3)
    assert np.abs(whole - x.astype(np.float64) / (np.abs(x).max() / 127)).max() <= 0.51
    assert phases(quantised) == 2


@pytest.mark.slow
def test_a_mean_over_all_is_taken_in_parts_before_it_is_subtracted() -> None:
    (x,) = drawn(less_the_mean)
    less, largest, total = less_the_mean(x)
    np.testing.assert_allclose(less, x - x.mean(dtype=np.float64), atol=1e-5)
    np.testing.assert_array_equal(largest, x.max(0) * 2)
    np.testing.assert_allclose(total.item(), x.sum(dtype=np.float64), rtol=1e-4)
    assert phases(less_the_mean) == 2
