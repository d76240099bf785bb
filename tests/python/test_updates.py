"""Tensors that a kernel updates: element by element, in windows that a tensor's end cuts off, in loops."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

pytestmark = [pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning"), pytest.mark.slow(but=1)]


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def by_elements(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 16)) as bx:
            for i, j in T.Parallel(16, N):
                C[bx * 16 + i, j] -= 0.5 * A[bx * 16 + i, j]

    return tile_eg.compile(main)


def by_windows(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 16)) as bx:
            a = T.alloc_shared((16, N), "float32")
            c = T.alloc_shared((16, N), "float32")
            T.copy(A[bx * 16, 0], a)
            T.copy(C[bx * 16, 0], c)
            c[:, :] = c - 0.5 * a
            T.copy(c, C[bx * 16, 0])

    return tile_eg.compile(main)


@pytest.mark.few(2)
@pytest.mark.parametrize("rows", [32, 29], ids=["whole", "a tail"])
@pytest.mark.parametrize("made", [by_elements, by_windows])
def test_a_tensor_is_updated_in_place(made, rows: int) -> None:
    a, c = values(rows, 40), values(rows, 41)[:, :40].copy()
    want = c - np.float32(0.5) * a
    made(rows, 40)(a, c)
    assert np.allclose(c, want, atol=1e-6)


def test_elements_are_updated_in_a_loop_over_windows() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 64), "float32"), C: T.Tensor((4, 32, 64), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((16, 64), "float32")
            T.copy(A[bx * 16, 0], a)
            for h in T.serial(4):
                for i, j in T.Parallel(16, 64):
                    C[h, bx * 16 + i, j] += a[i, j] * (h + 1)

    a, c = values(32, 64), values(4, 32, 64)
    want = c + a * np.arange(1, 5, dtype=np.float32)[:, None, None]
    tile_eg.compile(main)(a, c)
    assert np.allclose(c, want, atol=1e-6)


def test_an_element_that_iterations_share_is_no_update() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), C: T.Tensor((16,), "float32")):
        with T.Kernel(1) as _:
            for i, j in T.Parallel(16, 64):
                C[i] += A[i, j]

    with pytest.raises(tile_eg.TileError, match="every iteration of `j` writes the same|`C` is read"):
        tile_eg.compile(main).get_kernel_source()
