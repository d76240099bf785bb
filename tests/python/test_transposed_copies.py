"""`T.copy(..., transpose=True)`: rows become columns; where a product reads them, the tile itself is its transposed operand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

RNG = np.random.default_rng(0)
A, B, V = (RNG.integers(-3, 4, s).astype(np.float16) for s in ((32, 64), (128, 64), (128, 32)))


@T.prim_func
def found(X: T.Tensor((32, 64), "float16"), Y: T.Tensor((128, 64), "float16"), W: T.Tensor((128, 32), "float16"),
          C: T.Tensor((32, 32), "float32")):  # fmt: skip
    with T.Kernel(1) as _:
        x, y, w = T.alloc_L1((32, 64), "float16"), T.alloc_L1((128, 64), "float16"), T.alloc_L1((128, 32), "float16")
        p = T.alloc_L1((32, 128), "float16")
        left, right = T.alloc_L0A((32, 64), "float16"), T.alloc_L0B((2, 64, 128), "float16")
        wide, deep = T.alloc_L0A((32, 128), "float16"), T.alloc_L0B((128, 32), "float16")
        s, c = T.alloc_L0C((32, 128), "float32"), T.alloc_L0C((32, 32), "float32")
        T.copy(X, x)
        T.copy(Y, y)
        T.copy(W, w)
        T.copy(x, left)
        T.copy(y, right[1, :, :], transpose=True)
        T.mma(left, right[1, :, :], s, init=True)
        T.copy(s, p)
        T.copy(p, wide)
        T.copy(w, deep)
        T.mma(wide, deep, c, init=True)
        T.copy(c, C)


@T.prim_func
def kept(X: T.Tensor((32, 64), "float16"), Y: T.Tensor((128, 64), "float16"), C: T.Tensor((32, 128), "float32")):
    with T.Kernel(1) as _:  # noqa: SIM117
        with T.Scope("C"):
            x, y = T.alloc_L1((32, 64), "float16"), T.alloc_L1((128, 64), "float16")
            left, right = T.alloc_L0A((32, 32), "float16"), T.alloc_L0B((2, 32, 128), "float16")
            c = T.alloc_L0C((32, 128), "float32")
            T.copy(X, x)
            T.copy(Y, y)
            T.barrier_all()
            for k in T.serial(2):
                T.copy(x[0, k * 32], left)
                T.copy(y[0, k * 32], right[k, :, :], transpose=True)
                T.barrier_all()
                T.mma(left, right[k, :, :], c, init=(k == 0))
                T.barrier_all()
            T.copy(c, C)


@pytest.mark.slow
def test_an_operand_of_a_product_is_transposed() -> None:
    kernel = tile_eg.compile(found, out_idx=[-1])
    np.testing.assert_array_equal(kernel(A, B, V), ((A.astype(np.float32) @ B.T) @ V))
    assert "Gather" not in kernel.get_kernel_source()


@pytest.mark.slow
def test_a_part_is_transposed_in_a_kernel_that_is_kept() -> None:
    """The size of a part that begins somewhere is that of the other side, turned."""
    np.testing.assert_array_equal(tile_eg.compile(kept, out_idx=[-1])(A, B), A.astype(np.float32) @ B.T)


def turned(dtype: str, rows: int = 64) -> Any:
    @T.prim_func
    def main(X: T.Tensor((32, 64), dtype), C: T.Tensor((rows, 32), dtype)):
        with T.Kernel(1) as _:
            x, y = T.alloc_shared((32, 64), dtype), T.alloc_shared((rows, 32), dtype)
            T.copy(X, x)
            T.copy(x, y, transpose=True)
            T.copy(y, C)

    return tile_eg.compile(main, out_idx=[-1])


@pytest.mark.slow
def test_a_tile_that_no_product_reads_is_transposed() -> None:
    np.testing.assert_array_equal(turned("float16")(A), A.T)


def test_sizes_that_are_not_turned_are_refused() -> None:
    with pytest.raises(TileError, match=r"\(32, 64\) of x do not become \(32, 32\) of y"):
        turned("float16", 32)
