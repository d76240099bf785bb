"""A serial loop in an element loop, where each iteration keeps to its own elements."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError
from tile_eg.search.compiler import meaning

TEXT = """
@T.prim_func
def f(X: T.Tensor((8, 64), "float32"), Z: T.Tensor((8, 32), "float32")):
    with T.Kernel(1) as b:
        x = T.alloc_shared((8, 64), "float32")
        z = T.alloc_shared((8, 32), "float32")
        T.copy(X[0, 0], x)
        for i, j in T.Parallel(8, 32):
            z[i, j] = x[i, j]
            for {}:
                {}
            z[i, j] *= 0.25
        T.copy(z, Z[0, 0])
"""
X = np.random.default_rng(0).integers(-9, 9, (8, 64)).astype(np.float32)


def compiled(loop: str, body: str) -> tile_eg.jit.CompiledKernel:
    return tile_eg.compile(prim_func(TEXT.format(loop, body)), out_idx=[-1], effort="none")


def test_the_loop_goes_around_the_elements() -> None:
    made = compiled("k in T.serial(3)", "z[i, j] = z[i, j] + x[i, j + k + 1]")
    want = sum(X[:, k : k + 32] for k in range(4)) / 4
    np.testing.assert_array_equal(meaning(made.kernel, {"X": X})["Z"], want)


@pytest.mark.parametrize(("body", "want"), [
    ("w = j + k + 1; z[i, j] = z[i, j] + x[i, w]", sum(X[:, k : k + 32] for k in range(4))),
    ("z[i, j] += x[i, j] if i + k < 8 else 0.0", sum((np.arange(8)[:, None] + k < 8) * X[:, :32] for k in (0, 0, 1, 2))),
], ids=["a name", "a choice"])  # fmt: skip
def test_names_and_choices_stand_in_it(body: str, want: np.ndarray) -> None:
    made = compiled("k in T.serial(3)", body)
    np.testing.assert_array_equal(meaning(made.kernel, {"X": X})["Z"], want / 4)


def test_a_branch_stands_in_it() -> None:
    made = compiled("k in T.serial(3)", "if i + k < 8 and j > k: z[i, j] += x[i + k, j - 1]")
    i, j, want = np.arange(8)[:, None], np.arange(32), X[:, :32].copy()
    for k in range(3):
        want += np.where((i + k < 8) & (j > k), np.roll(np.roll(X, -k, 0), 1, 1)[:, :32], 0)
    np.testing.assert_array_equal(meaning(made.kernel, {"X": X})["Z"], want / 4)


@pytest.mark.slow
def test_a_loop_that_differs_from_iteration_to_iteration_is_done_in_each() -> None:
    made = compiled("k in T.serial(i + 1)", "z[i, j] = z[i, j] + x[k, j]")
    np.testing.assert_array_equal(meaning(made.kernel, {"X": X})["Z"], (X + X.cumsum(0))[:, :32] / 4)


@pytest.mark.parametrize("body", ["z[i, j] = z[i, j] + z[i, 0]", "z[i, 0] = z[i, 0] + x[i, j]"])
def test_what_uses_elements_of_other_iterations_is_refused(body: str) -> None:
    with pytest.raises(TileError, match="a serial loop inside T.Parallel"):
        compiled("k in T.serial(3)", body)
