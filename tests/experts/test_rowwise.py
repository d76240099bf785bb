"""Expert kernels of vector cores are real programs: right numbers in two passes over the columns, more tasks than cores."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experts import rowwise
from benchmarks.experts.rowwise import Rowwise

from .running import halves, ran

SIZE = Rowwise(7 * 16, 384, 16, 128, 3)


def normed(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + rowwise.EPSILON)


@pytest.mark.slow
def test_the_running_softmax_is_right() -> None:
    x = halves(SIZE.m, SIZE.n).astype(np.float32) * 8
    e = np.exp(x - x.max(-1, keepdims=True))
    assert np.allclose(ran(rowwise.softmax(SIZE), {"X": x}), e / e.sum(-1, keepdims=True), rtol=1e-5)


@pytest.mark.slow
def test_the_rms_norm_is_right() -> None:
    x, w = halves(SIZE.m, SIZE.n), halves(SIZE.n, seed=1)
    expected = normed(x.astype(np.float32)) * w
    assert np.allclose(ran(rowwise.rms_norm(SIZE), {"X": x, "W": w}), expected, atol=2e-3)


@pytest.mark.slow
def test_the_layer_norm_is_right() -> None:
    x, w, b = halves(SIZE.m, SIZE.n), halves(SIZE.n, seed=1), halves(SIZE.n, seed=2)
    wide = x.astype(np.float32)
    expected = normed(wide - wide.mean(-1, keepdims=True)) * w + b
    assert np.allclose(ran(rowwise.layer_norm(SIZE), {"X": x, "W": w, "B": b}), expected, atol=4e-3)


@pytest.mark.slow
def test_the_gate_is_right() -> None:
    a = halves(SIZE.m, 2, SIZE.n).astype(np.float32) * 3
    x, z = a[:, 0], a[:, 1]
    expected = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) * z
    assert np.allclose(ran(rowwise.gelu_mul(SIZE), {"A": a}), expected, atol=1e-5)


@pytest.mark.slow
def test_an_unfavourable_order_gives_the_same_norm() -> None:
    x, w = halves(SIZE.m, SIZE.n), halves(SIZE.n, seed=1)
    program = rowwise.rms_norm(SIZE)
    assert np.array_equal(ran(program, {"X": x, "W": w}, order=3), ran(program, {"X": x, "W": w}))


def test_a_size_that_would_need_tails_is_refused() -> None:
    with pytest.raises(ValueError, match="no tails"):
        Rowwise(100, 512)
