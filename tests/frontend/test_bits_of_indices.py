"""Shifts and masks of sizes, indices and loop variables in `.tile`."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference import run_kernel

X = np.arange(8 * 16, dtype=np.float32).reshape(8, 16)


def kernel(body: str, size: str = "16") -> Kernel:
    return load_text(f"""kernel k[M=8, N={size}](X: f32[M, N]) -> Y: f32[M, N] {{
      grid b = 4
      shared x: f32[2, N], y: f32[2, N]
      {body}
      Y[b*2, 0] = y }}""").instantiate()


@pytest.mark.parametrize(
    ("body", "meant"),
    [
        ("y = X[b << 1, 0]", X),
        ("y = X[(b ^ 1) * 2, 0]", X.reshape(4, 2, 16)[[1, 0, 3, 2]].reshape(8, 16)),
        ("x = X[b*2, 0] parallel (i, j) in (2, N) { y[i, j] = x[i, j] * (j & 3) + (i | 2) + (j >> 2) }",
         X * (np.arange(16) & 3) + (np.arange(8)[:, None] % 2 | 2) + (np.arange(16) >> 2)),
    ],
)  # fmt: skip
def test_bits_of_an_index_by_a_constant(body: str, meant: np.ndarray) -> None:
    np.testing.assert_array_equal(run_kernel(kernel(body), {"X": X})["Y"], meant)


def test_a_size_is_a_shifted_number() -> None:
    assert kernel("y = X[b*2, 0]", "4 << (6 & 3)").tensors[0].shape == (8, 16)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = X[1 << b, 0]", "the right side of `<<` has to be a constant"),
        ("y = X[b & b, 0]", "one side of `&` has to be a constant"),
        ("y = X[1 << 99, 0]", "by 0 to 31 bits, not 99"),
        ("y = X[b << 1.5, 0]", "a whole number, not 1.5"),
    ],
)
def test_other_bits_are_refused_at_their_line(body: str, message: str) -> None:
    with pytest.raises(TileError, match=message) as raised:
        kernel(body)
    assert raised.value.span is not None and raised.value.span.line == 4
