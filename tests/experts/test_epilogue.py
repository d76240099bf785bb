"""Expert products with an epilogue on vector cores: right numbers, tails included, and the cores meet without a race."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.experts.epilogue import by_ub, gemm_exp, matmul_add
from benchmarks.experts.gemm import Gemm, expert
from tile_eg.ir.program import Program
from tile_eg.search.compiler import plan

from .running import halves, ran

SIZES = [(384, 512, 256), (300, 200, 96)]


@pytest.mark.slow
@pytest.mark.parametrize("order", [None, 5])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_sum_is_right(size: tuple[int, int, int], order: int | None) -> None:
    m, n, k = size
    a, b, d = halves(m, k), halves(k, n, seed=1), halves(m, n, seed=2)
    found = ran(matmul_add(expert(m, n, k, cores=2)), {"A": a, "B": b, "D": d}, order)
    assert np.allclose(found, a.astype(np.float32) @ b.astype(np.float32) + d, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [matmul_add, gemm_exp])
def test_the_cube_never_is_more_tiles_ahead_than_a_counter_holds(kernel: Callable[[Gemm], Program]) -> None:
    p = kernel(expert(384, 2048, 16, cores=1))
    arrays = {t.name: halves(*t.shape) for t in p.tensors if not t.output}
    assert not plan(p).run(arrays, strict=False, order=2).findings


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_product_and_its_exponential_are_right(size: tuple[int, int, int]) -> None:
    m, n, k = size
    a, b = halves(m, k) / 4, halves(k, n, seed=1) / 4
    run = plan(gemm_exp(replace(expert(m, n, k, cores=2), out="f32"))).run({"A": a, "B": b}, strict=False)
    assert not run.findings
    expected = a.astype(np.float32) @ b.astype(np.float32)
    assert np.allclose(run["C"], expected, atol=1e-4)
    assert np.allclose(run["D"], np.exp(expected), rtol=1e-4)


@pytest.mark.parametrize("size", [(200, 300, 64), (300, 300, 64)], ids=str)
def test_a_product_through_the_ub_of_both_vector_cores_is_right(size: tuple[int, int, int]) -> None:
    m, n, k = size
    a, b = halves(m, k), halves(k, n, seed=1)
    g = Gemm(m, n, k, (128, 128), 64, 64, out="f32", persistent=4, split_last=True)
    run = plan(by_ub(g)).run({"A": a, "B": b}, strict=False)
    assert not run.findings
    assert np.allclose(run["C"], a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
