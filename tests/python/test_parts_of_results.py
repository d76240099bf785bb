"""Parts of L0C that are stored in kernels that are kept and in order: an Mmad packs its result by its own rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg import TileError

RNG = np.random.default_rng(0)
A, B = (RNG.uniform(-1, 1, (64, 64)).astype(np.float16) for _ in range(2))
PRODUCT = A.astype(np.float32) @ B.astype(np.float32)


def stored(chip: str, multiply: Callable[..., None], store: Callable[..., None]) -> Any:
    """A product of 64 x 64 in L0C, made and stored by two macros."""

    @tile_eg.jit(out_idx=[-1], chip=chip)
    def made():
        @T.prim_func
        def main(X: T.Tensor((64, 64), "float16"), Y: T.Tensor((64, 64), "float16"), Z: T.Tensor((64, 64), "float32")):
            with T.Kernel(1):
                x, y = T.alloc_L1((64, 64), "float16"), T.alloc_L1((64, 64), "float16")
                c = T.alloc_L0C((64, 64), "float32")
                T.copy(X, x)
                T.copy(Y, y)
                T.barrier_all()
                multiply(x, y, c)
                T.barrier_all()
                store(c, Z)

        return main

    return made()


@T.macro
def whole(x, y, c):
    T.gemm_v0(x, y, c, init=True)


@T.macro
def two(x, y, c):
    T.gemm_v0(x[0:32, :], y, c[0:32, :], init=True)
    T.gemm_v0(x[32:64, :], y, c[32:64, :], init=True)


@T.macro
def all_at_once(c, Z):
    T.copy(c, Z)


@T.macro
def rows(c, Z):
    T.copy(c[0:20, :], Z[0:20, :])
    T.copy(c[20:64, :], Z[20:64, :])


@T.macro
def squares(c, Z):
    for i in T.serial(4):
        T.copy(c[i * 16 : i * 16 + 16, 0:32], Z[i * 16, 0])
    T.copy(c[:, 32:64], Z[0, 32])


@T.macro
def from_a_column(c, Z):
    T.copy(c[:, 24:64], Z[0, 24])


@T.macro
def from_any_column(c, Z):
    for i in T.serial(8):
        T.copy(c[:, i * 8 : i * 8 + 8], Z[0, i * 8])


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize(("multiply", "store"), [(whole, rows), (whole, squares), (two, all_at_once)])
def test_a_part_of_a_result_is_found_where_its_product_put_it(chip, multiply, store) -> None:
    np.testing.assert_allclose(stored(chip, multiply, store)(A, B), PRODUCT, atol=1e-3)


@pytest.mark.parametrize(("store", "column"), [(from_a_column, "24"), (from_any_column, r"\(i \* 8\)")])
def test_columns_of_a_result_are_stored_from_whole_fractals_on(store, column) -> None:
    with pytest.raises(TileError, match=f"from column {column} on"):
        stored("910B2", whole, store)(A, B)


@pytest.mark.slow
def test_a_result_that_is_cut_is_read_in_the_rows_of_its_product() -> None:
    """On a 950 in order, 36 of 64 rows."""

    @tile_eg.jit(out_idx=[-1], chip="950", target="npuir")
    def made():
        @T.prim_func
        def main(X: T.Tensor((100, 64), "float16"), Y: T.Tensor((64, 64), "float16"), Z: T.Tensor((100, 64), "float32")):
            with T.Kernel(2) as (b, _):
                x, y = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                n = T.min(64, 100 - b * 64)
                T.copy(X[b * 64 : b * 64 + n, :], x[:n, :])
                T.copy(Y, y)
                T.gemm(x, y, c, initC=True, size=[n, 64, 64])
                T.copy(c[:n, :], Z[b * 64 : b * 64 + n, :])

        return main

    x = RNG.uniform(-1, 1, (100, 64)).astype(np.float16)
    np.testing.assert_allclose(made()(x, B), x.astype(np.float32) @ B.astype(np.float32), atol=1e-3)


@T.macro
def of_depth_17(x, y, c):
    T.gemm(x, y, c, init=True, size=[64, 17, 64])


@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_a_product_of_a_size_takes_as_much_of_its_depth(chip) -> None:
    expected = A[:, :17].astype(np.float32) @ B[:17].astype(np.float32)
    np.testing.assert_allclose(stored(chip, of_depth_17, all_at_once)(A, B), expected, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_goes_as_deep_as_only_the_kernel_knows(transposed) -> None:
    """In no step, in some of the four, and within a fractal."""

    @tile_eg.jit(out_idx=[-1])
    def made():
        @T.prim_func
        def main(
            X: T.Tensor((32, 512), "float16"), Y: T.Tensor((32, 512) if transposed else (512, 32), "float16"),
            N: T.Tensor((1,), "int32"), Z: T.Tensor((32, 32), "float32"),
        ):  # fmt: skip
            with T.Kernel(1, is_npu=True) as (b, _):  # noqa: F841
                x, y = T.alloc_L1((32, 512), "float16"), T.alloc_L1((32, 512) if transposed else (512, 32), "float16")
                c = T.alloc_L0C((32, 32), "float32")
                with T.Scope("C"):
                    T.copy(X, x)
                    T.copy(Y, y)
                    T.barrier_all()
                    T.gemm(x, y, c, init=True, transpose_B=transposed, size=[32, T.min(N[0], 512), 32])
                    T.barrier_all()
                    T.copy(c, Z)

        return main

    x, y = (RNG.uniform(-1, 1, s).astype(np.float16) for s in ((32, 512), (512, 32)))
    for n in (0, 100, 300, 512):
        found = made()(x, np.ascontiguousarray(y.T) if transposed else y, np.array([n], np.int32))
        np.testing.assert_allclose(found, x[:, :n].astype(np.float32) @ y[:n].astype(np.float32), atol=2e-3)


@tile_eg.jit(out_idx=[-1])
def deeper():
    @T.prim_func
    def main(X: T.Tensor((32, 64), "float16"), N: T.Tensor((1,), "int32"), Z: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):  # noqa: F841
            x, c = T.alloc_L1((32, 64), "float16"), T.alloc_L0C((32, 32), "float32")
            with T.Scope("C"):
                T.copy(X, x)
                T.barrier_all()
                T.gemm(x, x, c, init=True, transpose_B=True, size=[32, N[0], 32])
                T.barrier_all()
                T.copy(c, Z)

    return main


def test_a_product_that_may_be_deeper_than_its_tiles_is_refused() -> None:
    with pytest.raises(TileError, match="this may be deeper than the 64 that there is room for") as e:
        deeper().compile()
    assert "T.min(n, 64)" in e.value.help
