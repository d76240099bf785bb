"""`with T.Kernel(n, is_npu=True) as (cid, vid)`: the body runs on both vector cores of a block, as TileLang-Ascend runs it."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.python.written import prim_func
from tile_eg.errors import TileError, TileWarning
from tile_eg.ir.kernel import For, Kernel
from tile_eg.jit import CompiledKernel
from tile_eg.search.compiler import check_kernel, meaning

X = np.random.default_rng(0).uniform(-1, 1, (64, 64)).astype(np.float32)


@T.prim_func
def ones(C: T.Tensor((32,), "float32")):
    with T.Kernel(4, is_npu=True) as (cid, vid):
        s = T.alloc_shared((32,), "float32")
        T.tile.fill(s, 1.0)
        T.tile.atomic_add(C[0], s)


@T.prim_func
def ones_of_one_core(C: T.Tensor((32,), "float32")):
    with T.Kernel(4, threads=1, is_npu=True) as _:
        s = T.alloc_shared((32,), "float32")
        T.tile.fill(s, 1.0)
        T.tile.atomic_add(C[0], s)


@T.prim_func
def products(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((16, 16), "float32")):
    with T.Kernel(4, is_npu=True) as (cid, vid):
        a = T.alloc_shared((16, 16), "float16")
        b = T.alloc_shared((16, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        T.copy(A[0, 0], a)
        T.copy(B[0, 0], b)
        T.gemm_v0(a, b, c, init=True)
        T.tile.atomic_add(C[0, 0], c)


@T.prim_func
def products_by_vectors(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((16, 16), "float32")):
    with T.Kernel(4, is_npu=True) as (cid, vid):
        a = T.alloc_shared((16, 16), "float16")
        b = T.alloc_shared((16, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        u = T.alloc_shared((16, 16), "float32")
        T.copy(A[0, 0], a)
        T.copy(B[0, 0], b)
        T.gemm_v0(a, b, c, init=True)
        T.copy(c, u)
        T.tile.atomic_add(C[0, 0], u)


@T.prim_func
def sums_of_halves(x_: T.Tensor((64, 64), "float32"), S: T.Tensor((64,), "float32")):
    with T.Kernel(2, is_npu=True) as (cid, vid):
        x = T.alloc_shared((16, 64), "float32")
        s = T.alloc_shared((64,), "float32")
        T.copy(x_[cid * 32 + vid * 16, 0], x)
        T.reduce_sum(x, s, dim=0)
        T.tile.atomic_add(S[0], s)


@T.prim_func
def both_store_the_same(x_: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32"), Z: T.Tensor((2, 64), "float32")):
    with T.Kernel(2, is_npu=True) as (cid, vid):
        x = T.alloc_shared((16, 64), "float32")
        z = T.alloc_shared((64,), "float32")
        T.copy(x_[cid * 32 + vid * 16, 0], x)
        T.tile.exp(x, x)
        T.copy(x, Y[cid * 32 + vid * 16, 0])
        T.copy(x_[cid, 0], z)
        T.copy(z, Z[cid, 0])


@T.prim_func
def one_core_stores(x_: T.Tensor((64, 64), "float32"), Z: T.Tensor((2, 64), "float32")):
    with T.Kernel(2, is_npu=True) as (cid, vid):
        z = T.alloc_shared((64,), "float32")
        if vid == 0:
            T.copy(x_[cid, 0], z)
            T.copy(z, Z[cid, 0])


def added(kernel: CompiledKernel, shape: tuple[int, ...], *inputs: np.ndarray) -> np.ndarray:
    out = np.zeros(shape, np.float32)
    kernel(*inputs, out)
    return out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_both_cores_add_where_the_number_of_the_core_is_not_used() -> None:
    assert np.array_equal(added(tile_eg.jit(ones), (32,)), np.full(32, 8.0))


@pytest.mark.slow
def test_a_note_says_that_it_is_added_twice() -> None:
    (note,) = check_kernel(tile_eg.jit(ones).kernel)
    assert note.text == "both vector cores of a block do this, so that `C` gets it twice"
    with pytest.warns(TileWarning, match="gets it twice"):
        tile_eg.jit(ones, effort="none").compile()


@pytest.mark.slow
def test_with_one_name_the_body_runs_once() -> None:
    assert np.array_equal(added(tile_eg.jit(ones_of_one_core), (32,)), np.full(32, 4.0))


@pytest.mark.slow
def test_what_the_cube_core_adds_is_added_once() -> None:
    one = np.ones((16, 16), np.float16)
    assert np.array_equal(added(tile_eg.jit(products), (16, 16), one, one), np.full((16, 16), 64.0))


def test_a_product_that_the_vector_cores_add_is_added_twice() -> None:
    one = np.ones((16, 16), np.float16)
    meant = meaning(tile_eg.jit(products_by_vectors).kernel, {"A": one, "B": one})["C"]
    assert np.array_equal(meant, np.full((16, 16), 128.0))


@pytest.mark.slow
def test_halves_are_added_once_each() -> None:
    kernel = tile_eg.jit(sums_of_halves)
    assert kernel.kernel.grid == (("cid", 2), ("vid", 2))
    np.testing.assert_allclose(added(kernel, (64,), X), X.sum(axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_two_stores_of_equal_values_to_one_place_are_no_finding() -> None:
    y, z = tile_eg.jit(both_store_the_same, out_idx=[1, 2])(X)
    np.testing.assert_allclose(y, np.exp(X), rtol=1e-5)
    assert np.array_equal(z, X[:2])


@pytest.mark.slow
def test_a_branch_may_ask_which_core_this_is() -> None:
    assert np.array_equal(tile_eg.jit(one_core_stores, out_idx=[1])(X), X[:2])


def body(statements: str) -> Kernel:
    """A kernel of two blocks with these statements; x is a buffer of a row, X and Z tensors."""
    text = f"""
@T.prim_func
def f(X: T.Tensor((64, 64), "float32"), Z: T.Tensor((64, 64), "float32")):
    with T.Kernel(2, is_npu=True) as (cid, vid):
        x = T.alloc_shared((64,), "float32")
        y = T.alloc_shared((64,), "float32")
        {statements}
"""
    return tile_eg.jit(prim_func(text)).kernel


FIRST = "T.copy(X[cid, 0], x)\n        if vid == 0:\n            T.copy(x, y)\n        "
SAME = "T.fill(y, 1.0); T.copy(y, Z[32 + cid, 0]); "


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (SAME + "T.copy(X[vid, 0], x); T.copy(x, Z[cid, 0])", "both vector cores write the same elements of `Z`"),
        (SAME + "T.copy(X[cid * 2 + vid, 0], x); T.copy(x, Z[vid, 0])", "two blocks write the same elements of `Z`"),
        (SAME + FIRST + "T.copy(y, Z[cid, 0])", "values differ"),
        (FIRST + "T.copy(y, Z[cid * 2 + vid, 0])", "`y` is read before it is written"),
    ],
    ids=["one place", "meeting windows", "a branch before it", "from the other core"],
)
def test_cores_do_not_meet_with_different_values(statements: str, message: str) -> None:
    with pytest.raises(TileError, match=message):
        check_kernel(body(statements))


def test_the_cores_take_turns_only_where_they_have_to() -> None:
    parted = body("T.copy(X[cid * 2 + vid, 0], x); T.copy(x, Z[cid * 2 + vid, 0])")
    both = body(SAME + "T.copy(X[cid * 2 + vid, 0], x); T.copy(x, Z[cid * 2 + vid, 0])")
    assert parted.grid == (("cid", 2), ("vid", 2)) and not any(isinstance(s, For) for s in parted.body)
    assert both.grid == (("cid", 2),) and [s.var for s in both.body if isinstance(s, For)] == ["vid"]


@pytest.mark.slow
def test_one_vector_core_may_do_all() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            if vid == 1:
                x = T.alloc_ub((64,), "float32")
                T.copy(A[cid, 0:64], x)
                for _ in T.serial(3):
                    T.tile.add(x, x, x)
                T.copy(x, B[cid, 0:64])

    a = np.random.default_rng(0).uniform(-1, 1, (4, 64)).astype(np.float32)
    assert (tile_eg.compile(main, out_idx=[1])(a) == 8 * a).all()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [40, 33, 1])
def test_the_half_of_a_tile_at_the_end_may_have_nothing_to_do(rows: int) -> None:
    """The tile's own place is a quotient of the block's index."""

    @T.prim_func
    def main(A: T.Tensor((rows, 100), "float32"), B: T.Tensor((rows, 100), "float32")):
        with T.Kernel(T.ceildiv(rows, 16) * 2) as (cid, vid):
            a = T.alloc_ub((8, 64), "float32")
            at = cid // 2 * 16 + vid * 8
            T.copy(A[at, cid % 2 * 64], a)
            T.tile.abs(a, a)
            T.copy(a, B[at, cid % 2 * 64])

    a = np.random.default_rng(0).uniform(-1, 1, (rows, 100)).astype(np.float32)
    assert np.array_equal(tile_eg.compile(main, out_idx=[1])(a), np.abs(a))


@pytest.mark.slow
@pytest.mark.parametrize("loads", [True, False])
def test_an_element_loop_of_a_vector_core_may_have_nothing_to_do(loads: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((9, 32), "float32"), C: T.Tensor((9, 32), "float32")):
        with T.Kernel(2) as (cid, vid):
            x = T.alloc_ub((4, 32), "float32")
            if loads:
                for i, j in T.Parallel(4, 32):
                    x[i, j] = A[cid * 8 + vid * 4 + i, j] * 2.0
                T.copy(x, C[cid * 8 + vid * 4, 0])
            else:
                T.copy(A[cid * 8 + vid * 4, 0], x)
                for i, j in T.Parallel(4, 32):
                    C[cid * 8 + vid * 4 + i, j] = x[i, j] * 2.0

    a = np.arange(9 * 32, dtype=np.float32).reshape(9, 32)
    assert (tile_eg.compile(main, out_idx=[-1])(a) == a * 2).all()


@pytest.mark.slow
def test_the_second_vector_core_may_begin_beyond_the_end_of_all_that_one_block_stores() -> None:
    @T.prim_func
    def main(A: T.Tensor((1, 512), "float32"), C: T.Tensor((1, 512), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((1, 512), "float32")
            T.copy(A[cid + vid, 0], x)
            T.tile.abs(x, x)
            T.copy(x, C[cid + vid, 0])

    with pytest.warns(TileWarning, match="with `vid` 1 this begins beyond the end of `C`"):
        kernel = tile_eg.compile(main, out_idx=[-1])
        assert (kernel(X[:8].reshape(1, 512)) == np.abs(X[:8].reshape(1, 512))).all()


def test_of_two_blocks_no_window_begins_beyond_the_end() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "float32"), C: T.Tensor((2, 64), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            x = T.alloc_ub((1, 64), "float32")
            T.copy(A[cid + vid, 0], x)
            T.copy(x, C[cid + vid, 0])

    with pytest.raises(TileError, match=r"a window of `A` lies outside: cid \+ vid takes the value 2"):
        tile_eg.compile(main, out_idx=[-1])(X[:2])


@pytest.mark.slow
def test_one_row_that_may_not_be_there_has_any_length() -> None:
    @T.prim_func
    def main(A: T.Tensor((3, 20), "float32"), C: T.Tensor((3, 20), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            x = T.alloc_ub((1, 20), "float32")
            T.copy(A[cid * 2 + vid, 0], x)
            T.pipe_barrier("all")
            T.copy(x, C[cid * 2 + vid, 0])

    a = np.arange(60, dtype=np.float32).reshape(3, 20)
    assert (tile_eg.compile(main, out_idx=[-1])(a) == a).all()
