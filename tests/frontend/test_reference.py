"""The sequential meaning: the examples compute what their NumPy formulas say, and values mean what the kernel means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject, settings

from tile_eg.errors import TileError
from tile_eg.frontend.checks import check
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference import run_kernel, run_values
from tile_eg.ir.values import Values
from tile_eg.ops.types import BF16

from .kernels import kernels

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, **sizes: int) -> Kernel:
    path = EXAMPLES / f"{name}.tile"
    return load_text(path.read_text(), path.name).instantiate(sizes)


def arrays(kernel: Kernel, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    inputs = [t for t in kernel.tensors if not t.output]
    return {t.name: rng.uniform(-1, 1, t.shape).astype(numpy_dtype(t.dtype)) for t in inputs}


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> dict[str, np.ndarray]:
    return {"O": softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])) @ V}


def rms_norm(X: np.ndarray, W: np.ndarray) -> dict[str, np.ndarray]:
    return {"Y": X / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-5) * W}


def gelu_mul(A: np.ndarray) -> dict[str, np.ndarray]:
    x, z = A[:, 0], A[:, 1]
    return {"Y": x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) * z}


FORMULAS = {
    "vector_add": lambda A, B: {"C": A + B},
    "gemm": lambda A, B: {"C": A @ B},
    "gemm_transposed": lambda A, B: {"C": A.T @ B.T},
    "gemm_exp": lambda A, B: {"C": A @ B, "D": np.exp(A @ B)},
    "matmul_add": lambda A, B, D: {"E": A @ B + D},
    "softmax": lambda X: {"Y": softmax(X)},
    "online_softmax": lambda X: {"Y": softmax(X)},
    "rms_norm": rms_norm,
    "layer_norm": lambda X, W, B: {"Y": rms_norm(X - X.mean(-1, keepdims=True), W)["Y"] + B},
    "gelu_mul": gelu_mul,
    "flash_attention": attention,
    "flash_attention_rows": attention,
}
SMALL = {"B": 1, "H": 2, "S": 100, "D": 40, "BM": 32, "BN": 32}
SHAPES = [
    ("vector_add", {}), ("vector_add", {"M": 100, "N": 200}), ("vector_add", {"M": 1, "N": 1}),
    ("gemm", {}), ("gemm", {"M": 300, "N": 200, "K": 100}), ("gemm", {"M": 17, "N": 5, "K": 3}),
    ("gemm_transposed", {}), ("gemm_transposed", {"M": 130, "N": 300, "K": 70}),
    ("gemm_exp", {}), ("gemm_exp", {"M": 100, "N": 200, "K": 30}),
    ("matmul_add", {}), ("matmul_add", {"M": 200, "N": 130, "K": 100}),
    ("softmax", {}), ("softmax", {"M": 100, "N": 300}), ("softmax", {"M": 1, "N": 1}),
    ("online_softmax", {}), ("online_softmax", {"M": 70, "N": 500}), ("online_softmax", {"M": 1, "N": 1}),
    ("rms_norm", {}), ("rms_norm", {"M": 33, "N": 100}), ("layer_norm", {}), ("layer_norm", {"M": 33, "N": 100}),
    ("gelu_mul", {}), ("gelu_mul", {"M": 70, "N": 100}),
    ("flash_attention", {}), ("flash_attention", SMALL), ("flash_attention", SMALL | {"BN": 64}),
    ("flash_attention_rows", SMALL),
]  # fmt: skip


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32)


@pytest.mark.slow(but=3)
@pytest.mark.parametrize(("name", "sizes"), SHAPES, ids=[f"{n}-{'x'.join(map(str, s.values())) or 'default'}" for n, s in SHAPES])
def test_an_example_computes_its_formula(name, sizes):
    kernel = example(name, **sizes)
    given_arrays = arrays(kernel)
    expected = FORMULAS[name](**{n: wide(a) for n, a in given_arrays.items()})
    for output, found in run_kernel(kernel, given_arrays).items():
        np.testing.assert_allclose(wide(found), expected[output], rtol=2e-3, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes"), SHAPES, ids=[f"{n}-{'x'.join(map(str, s.values())) or 'default'}" for n, s in SHAPES])
def test_an_example_means_the_same_as_values(name, sizes):
    kernel = example(name, **sizes)
    given_arrays = arrays(kernel)
    check(kernel)
    expected, found = run_kernel(kernel, given_arrays), run_values(to_values(kernel), given_arrays)
    for output in expected:
        np.testing.assert_allclose(wide(found[output]), wide(expected[output]), rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(kernels())
def test_values_mean_what_the_kernel_means(kernel):
    check(kernel)
    given_arrays = arrays(kernel)
    expected, found = run_kernel(kernel, given_arrays), run_values(values_or_reject(kernel), given_arrays)
    for output in expected:
        np.testing.assert_allclose(wide(found[output]), wide(expected[output]), rtol=2e-2, atol=2e-2)


def values_or_reject(kernel: Kernel) -> Values:
    """The kernel's values; what the compiler says it does not support is no example."""
    try:
        return to_values(kernel)
    except TileError as e:
        assert "not supported yet" in e.message
        reject()


def run_text(text: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    kernel = load_text(text).instantiate()
    check(kernel)
    return run_kernel(kernel, inputs)


def test_a_sum_does_not_see_what_lies_beyond_the_tensor():
    x = np.ones((3, 5), np.float32)
    text = """kernel k(X: f32[3, 5]) -> S: f32[3] {
      shared x: f32[8, 16], s: f32[8]  x = X[0, 0]  s = rowsum(x)  S[0] = s }"""
    out = run_text(text, X=x)
    assert out["S"].tolist() == [5, 5, 5]


def test_a_maximum_of_negative_numbers_does_not_see_a_padding():
    x = -np.ones((2, 3), np.float32)
    text = """kernel k(X: f32[2, 3]) -> S: f32[2] {
      shared x: f32[8, 8], s: f32[8]  x = X[0, 0]  s = rowmax(x)  S[0] = s }"""
    out = run_text(text, X=x)
    assert out["S"].tolist() == [-1, -1]


def test_a_product_does_not_multiply_infinity_with_what_lies_beyond():
    a, b = np.full((4, 8), np.inf, np.float32), np.ones((5, 4), np.float32)
    a[:, :5] = 1
    text = """kernel k(A: f32[4, 8], B: f32[5, 4]) -> C: f32[4, 4] {
      shared a: f32[4, 8], b: f32[8, 4]  a = A[0, 0]  b = B[0, 0]  fragment c: f32[4, 4] = a @ b  C[0, 0] = c }"""
    assert (run_text(text, A=a, B=b)["C"] == 5).all()


def test_what_is_not_written_stays_nan():
    text = "kernel k(X: f32[4, 4]) -> Y: f32[8, 4] { shared x: f32[4, 4] x = X[0, 0] Y[4, 0] = x }"
    out = run_text(text, X=np.ones((4, 4), np.float32))
    assert np.isnan(out["Y"][:4]).all()


def test_half_precision_arithmetic_is_rounded_after_every_operation():
    x = np.full((1, 1), 2048, np.float16)
    out = run_text("kernel k(X: f16[1, 1]) -> Y: f32[1, 1] { shared x: f16[1, 1] x = X[0, 0] Y[0, 0] = (x + 1) + 1 }", X=x)
    assert out["Y"] == 2048


def test_bfloat16_arithmetic_is_rounded_to_bfloat16():
    x = np.full((1, 1), 256, numpy_dtype(BF16))
    out = run_text("kernel k(X: bf16[1, 1]) -> Y: f32[1, 1] { shared x: bf16[1, 1] x = X[0, 0] Y[0, 0] = x + 1 }", X=x)
    assert out["Y"] == 256


def test_blocks_run_with_the_first_grid_dimension_fastest():
    text = """kernel k(X: f32[2, 2]) -> Y: f32[1, 1] {
      grid (i, j) = (2, 2)  shared x: f32[1, 1]  x = X[j, i]  Y[0, 0] = x }"""
    inputs = {"X": np.array([[1, 2], [3, 4]], np.float32)}
    assert run_kernel(load_text(text).instantiate(), inputs)["Y"] == 4  # the last block's; `check` refuses such a kernel
