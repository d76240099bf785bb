"""`T.reshape` and `T.view` of tiles: the same elements in order."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError, TileWarning
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

TEXT = """
kernel reshaped[M=64, N=32](X: f32[M, N], Y: f16[512]) -> (A: f32[128, 16], B: f16[8, 64], V: f32[2048]) {
  grid bx = 1
  shared x: f32[M, N], y: f16[512], a: f32[128, 16], v: f32[2048]
  x = X[0, 0]
  y = Y[0]
  a = reshape(x, 128, 16) * 2
  A[0, 0] = a
  B[0, 0] = reshape(y, 8, 64)
  v = reshape(a, 2048)
  V[0] = v + 1
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_elements_keep_their_order(chip: str) -> None:
    x, y = np.arange(2048, dtype=np.float32).reshape(64, 32), np.arange(512).astype(np.float16)
    run = lower(load_text(TEXT).instantiate(), chip).run({"X": x, "Y": y})
    assert not run.findings and (run.outputs["A"] == x.reshape(128, 16) * 2).all()
    assert (run.outputs["B"] == y.reshape(8, 64)).all() and (run.outputs["V"] == x.reshape(-1) * 2 + 1).all()


def kernel(written: bool = False, shape=(16, 64), dtype=None):
    @tile_eg.jit(out_idx=[-1])
    def build():
        @T.prim_func
        def main(X: T.Tensor((32, 32), "float32"), C: T.Tensor((16, 64), "float32")):
            with T.Kernel(1) as _:
                x = T.alloc_shared((32, 32), "float32")
                y = T.alloc_shared((16, 64), "float32")
                T.copy(X, x)
                v = T.view(x, shape, dtype)
                if written:
                    T.clear(x)
                T.tile.add(y, v, v)
                T.copy(y, C)

        return main

    return build()


@pytest.mark.slow
def test_in_python_it_is_a_value() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (32, 32)).astype(np.float32)
    assert (kernel()(x) == 2 * x.reshape(16, 64)).all()


def test_another_number_of_elements_is_refused() -> None:
    with pytest.raises(TileError, match="1024 elements have no shape 15 x 64"):
        kernel(shape=(15, 64))


def test_a_view_that_is_read_once_its_buffer_has_changed_is_its_memory() -> None:
    with pytest.warns(TileWarning, match="may have changed since"):
        y = kernel(written=True)(np.ones((32, 32), np.float32))
    assert not y.any()


def test_elements_of_a_view_are_those_of_its_buffer() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def scaled(X: T.Tensor((8, 32), "float32"), Y: T.Tensor((8, 32), "float32")):
        with T.Kernel(1):
            x = T.alloc_shared((8, 32), "float32")
            T.copy(X, x)
            v = T.reshape(x, (32, 8))
            for i, j in T.Parallel(32, 8):
                v[i, j] = v[i, j] * (i + 1)
            T.copy(x, Y)

    x = np.random.default_rng(0).uniform(-1, 1, (8, 32)).astype(np.float32)
    with pytest.warns(TileWarning, match="elements of a view"):
        y = scaled(x)
    np.testing.assert_allclose(y.reshape(32, 8), x.reshape(32, 8) * np.arange(1, 33)[:, None], rtol=1e-6)


def test_rows_with_gaps_are_refused() -> None:
    with pytest.raises(TileError, match="rows of 4 of f32 have gaps"):
        lower(load_text(TEXT.replace("A: f32[128, 16]", "A: f32[512, 4]").replace("a: f32[128, 16]", "a: f32[512, 4]")
                        .replace("128, 16)", "512, 4)")).instantiate())  # fmt: skip
