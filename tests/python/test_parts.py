"""Parts of buffers outside of loops over rows and elements."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.search.compiler import meaning

X = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)


def computed(lines) -> np.ndarray:
    """What y is behind `lines(x, y)`; x is X, y begins with zeros."""

    @T.prim_func
    def main(A: T.Tensor((32, 128), "float32"), C: T.Tensor((16, 64), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((32, 128), "float32")
            y = T.alloc_shared((16, 64), "float32")
            T.copy(A[0, 0], x)
            T.clear(y)
            lines(x, y)
            T.copy(y, C[0, 0])

    return tile_eg.compile(main, out_idx=[-1])(X)


@T.macro
def a_part_is_read(x, y):
    y[:, :] = x[8:24, 64:128] * 2.0


@T.macro
def a_part_is_filled(x, y):
    y[4:8, 16:32] = 3.0


@T.macro
def an_element_is_written(x, y):
    y[2, 5] = 7.0


@T.macro
def an_element_is_made_of_itself_and_others(x, y):
    y[2, 5] = y[2, 5] + 3.0
    y[2, 5] = y[2, 5] * y[2, 5] + x[0, 4] - y[2, 4]


def with_part(rows: slice, columns: slice, value: float) -> np.ndarray:
    y = np.zeros((16, 64), np.float32)
    y[rows, columns] = value
    return y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (a_part_is_read, X[8:24, 64:128] * 2),
        (a_part_is_filled, with_part(slice(4, 8), slice(16, 32), 3)),
        (an_element_is_written, with_part(slice(2, 3), slice(5, 6), 7)),
        (an_element_is_made_of_itself_and_others, with_part(slice(2, 3), slice(5, 6), 13)),
    ],
    ids=["read", "filled", "element", "of itself"],
)
def test_a_part_of_a_buffer(lines, wanted: np.ndarray) -> None:
    assert (computed(lines) == wanted).all()


@T.macro
def rows_are_copied(x, y):
    y[0:8, :] = x[8:16, 0:64]


@pytest.mark.slow
def test_a_part_that_gets_other_values() -> None:
    whole = computed(a_part_is_read)
    got = computed(rows_are_copied)
    assert (got[:8] == X[8:16, :64]).all() and got.shape == whole.shape


@pytest.mark.slow
def test_an_index_stands_for_a_dimension_of_one_element() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "float32"), C: T.Tensor((2, 64), "float32")):
        with T.Kernel(2) as cid:
            x = T.alloc_shared([1, 64], "float32")
            T.copy(A[cid, 0], x[0, :])
            T.copy(x[0, :], C[cid, 0])

    assert (tile_eg.compile(main, out_idx=[-1])(X[:2, :64].copy()) == X[:2, :64]).all()


# ---- variables ------------------------------------------------------------------------------------------------


def with_variables(lines) -> float:
    @T.prim_func
    def main(C: T.Tensor((16,), "float32")):
        with T.Kernel(1) as _:
            c = T.alloc_shared((16,), "float32")
            lines(c)
            T.copy(c, C[0])

    return float(meaning(tile_eg.compile(main).kernel, {})["C"][0])


def test_a_variable_changes_as_the_statements_stand() -> None:
    @T.macro
    def lines(c):
        a = T.alloc_var("int32", init=1)
        b = T.alloc_var("int32", init=a)
        flag = T.alloc_var("bool", init=False)
        flag = True  # noqa: F841
        if flag:
            a += 3
        T.fill(c, a * 10 + b)

    assert with_variables(lines) == 41


def test_a_variable_without_a_value_is_0() -> None:
    @T.macro
    def lines(c):
        a = T.alloc_var("float32")
        T.fill(c, a + 2.0)

    assert with_variables(lines) == 2


def test_a_variable_goes_on_around_a_loop() -> None:
    @T.macro
    def lines(c):
        a = T.alloc_var("int32", init=1)
        for _ in T.serial(3):
            a += 1
        T.fill(c, a)

    assert with_variables(lines) == 4


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 3, 63])
def test_an_element_of_a_vector_is_spread(index: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((64,), "float32")
            T.copy(A[0], x)
            T.tile.fill(x, x[index])
            T.copy(x, C[0])

    a = X[0, :64] + 0.1
    a[5] = np.nan
    assert (tile_eg.compile(main, out_idx=[-1])(a) == a[index]).all()


@T.macro
def a_tile_times_an_element(x, y, v):
    T.tile.mul(y, y, v[2])


@T.macro
def elements_times_an_element(x, y, v):
    for i, j in T.Parallel(16, 64):
        y[i, j] = y[i, j] * v[2]


@pytest.mark.slow
@pytest.mark.parametrize("lines", [a_tile_times_an_element, elements_times_an_element], ids=["tile", "loop"])
def test_an_element_of_a_vector_beside_a_tile(lines) -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), V: T.Tensor((8,), "float32"), C: T.Tensor((16, 64), "float32")):
        with T.Kernel(1) as _:
            y = T.alloc_shared((16, 64), "float32")
            v = T.alloc_shared((8,), "float32")
            T.copy(A[0, 0], y)
            T.copy(V[0], v)
            lines(None, y, v)
            T.copy(y, C[0, 0])

    v = np.arange(8, dtype=np.float32)
    assert (tile_eg.compile(main, out_idx=[-1])(X[:16, :64].copy(), v) == X[:16, :64] * 2).all()


@pytest.mark.slow
def test_a_part_is_zero_behind_the_end_of_its_tensor() -> None:
    """Also where the other operand of a product ends there."""

    @T.prim_func
    def main(A: T.Tensor((16, 48), "float16"), B: T.Tensor((32, 48), "float16"), C: T.Tensor((16, 64), "float32")):
        with T.Kernel(1) as _:
            a, b = T.alloc_shared((16, 32), "float16"), T.alloc_shared((64, 32), "float16")
            c = T.alloc_fragment((16, 64), "float32")
            for k in T.serial(2):
                T.copy(A[0, k * 32], a)
                T.copy(B[0, k * 32], b[0:32, :])
                T.copy(B[0, k * 32], b[32:64, :])
                T.gemm_v0(a, b, c, transpose_B=True, init=(k == 0))
            T.copy(c, C[0, 0])

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (n, 48)).astype(np.float16) for n in (16, 32))
    expected = a.astype(np.float32) @ np.concatenate([b, b]).T
    np.testing.assert_array_equal(tile_eg.compile(main, out_idx=[-1])(a, b), expected)


@pytest.mark.slow
def test_an_element_may_be_the_first_that_a_branch_writes() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 16), "float32"), S: T.Tensor((2, 16), "float32")):
        with T.Kernel(2) as (cid, vid):
            a = T.alloc_ub((16,), "float32")
            s = T.alloc_ub((16,), "float32")
            if vid == 0:
                T.copy(A[cid, :], a)
                s[0] = a[0]
                for i in T.serial(1, 16):
                    s[i] = s[i - 1] + a[i]
                T.copy(s, S[cid, :])

    a = np.arange(32, dtype=np.float32).reshape(2, 16)
    assert (tile_eg.compile(main, out_idx=[-1])(a) == a.cumsum(1)).all()


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("heads", [3, 2])
def test_rows_that_lie_side_by_side_in_a_tensor_are_each_their_own(heads: int) -> None:
    @T.prim_func
    def main(X: T.Tensor((2, heads * 32), "float32"), Y: T.Tensor((2, heads * 32), "float32")):
        with T.Kernel(2) as r:
            x = T.alloc_ub((heads, 32), "float32")
            for h in T.serial(heads):
                T.copy(X[r, h * 32 : (h + 1) * 32], x[h, :])
            for h in T.serial(heads):
                T.copy(x[h, :], Y[r, h * 32 : (h + 1) * 32])

    x = np.arange(2 * heads * 32, dtype=np.float32).reshape(2, -1)
    assert (tile_eg.compile(main, out_idx=[-1])(x) == x).all()


@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_an_element_of_whole_numbers_that_is_computed_of_itself_is_done_in_order() -> None:
    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), C: T.Tensor((16,), "int32")):
        with T.Kernel(1):
            v = T.alloc_shared((16,), "int32")
            T.copy(A, v)
            v[3] = v[3] + 5
            v[4] = v[3] * v[4]
            T.copy(v, C)

    found = tile_eg.compile(main, out_idx=[-1])(np.arange(16, dtype=np.int32))
    assert found.tolist() == [0, 1, 2, 8, 32, *range(5, 16)]


def test_one_element_of_a_buffer_takes_no_tile() -> None:
    def wrong(x, y) -> None:
        y[0, 0] = T.exp(x[0:16, 0:64])

    with pytest.raises(TileError, match="one element of y is assigned a tile"):
        computed(wrong)
