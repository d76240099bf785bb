"""`**` of numbers, of positions, of whole numbers of a call, and in sizes and indices of `.tile` text."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.passed import NeedsNumber, passed_whole
from tile_eg.ir.reference import run_kernel

X = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
ROWS = np.arange(16, dtype=np.float32)[:, None]
TEXT = """kernel k[R=2 ** 4](X: f32[R, 64], n: i32) -> Y: f32[R, 64] {{
  grid b = 1
  shared x: f32[2 ** 4, 64]
  x = X[(b + 0) ** 2, 0]
  parallel (i, j) in (16, 64) {{ x[i, j] = x[i, j] + {value} }}
  Y[0, 0] = x
}}
"""


def kernel(value: str, n: object = 3) -> Kernel:
    return load_text(TEXT.format(value=value)).instantiate({"n": n})


@pytest.mark.parametrize(
    ("value", "added"),
    [("2 ** 3", 8), ("n ** 2", 9), ("2 ** n", 8), ("2 ** -1", 0.5), ("i ** 2", ROWS**2), ("(i + n) ** 2", (ROWS + 3) ** 2)],
)
def test_powers(value: str, added: object) -> None:
    np.testing.assert_allclose(run_kernel(kernel(value), {"X": X})["Y"], X + added, rtol=1e-5)


def test_a_square_of_a_number_of_a_call_stays_one() -> None:
    assert kernel("n ** 2", passed_whole("n")).wholes == ("n",)
    with pytest.raises(NeedsNumber):
        kernel("2 ** n", passed_whole("n"))


@pytest.mark.parametrize("value", ["0 ** -1", "(-2) ** 0.5", "10.0 ** 999", "2 ** 9999999"])
def test_what_is_no_number_is_told(value: str) -> None:
    with pytest.raises(TileError, match="is no number"):
        kernel(value)
