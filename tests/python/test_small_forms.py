"""Forms that users write: both arms of a branch, one row beside a tile, helpers with words, sums of narrow rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.frontend.python.word_users import uses_words
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

pytestmark = [pytest.mark.slow(but=1), pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")]
X = np.random.default_rng(0).uniform(-2, 2, (13, 33)).astype(np.float32)
LEAKY = np.where(X > 0, X, X * np.float32(0.5))


@pytest.mark.slow
def test_both_arms_of_a_branch_write_an_element() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(A: T.Tensor((13, 33), "float32"), B: T.Tensor((13, 33), "float32")):
        with T.Kernel(1, threads=2, is_npu=True) as _:
            x = T.alloc_shared((16, 33), "float32")
            y = T.alloc_shared((16, 33), "float32")
            T.copy(A, x[:13, :])
            for i, j in T.Parallel(16, 33):
                if x[i, j] > 0:
                    y[i, j] = x[i, j]
                else:
                    y[i, j] = x[i, j] * 0.5
            T.copy(y, B[0, 0])

    np.testing.assert_array_equal(main(X), LEAKY)


def test_so_they_do_in_a_text() -> None:
    text = """kernel leaky[M=13, N=33](A: f32[M, N]) -> B: f32[M, N] {
  grid b = 1
  shared x: f32[M, N], y: f32[M, N]
  x = A[0, 0]
  parallel (i, j) in (M, N) { if x[i, j] > 0 { y[i, j] = x[i, j] } else { y[i, j] = x[i, j] * 0.5 } }
  B[0, 0] = y
}
"""
    np.testing.assert_array_equal(lower(load_text(text, "t.tile").instantiate()).run({"A": X}).outputs["B"], LEAKY)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_tile_of_one_row_stands_beside_others(dtype: str) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(A: T.Tensor((13, 33), dtype), V: T.Tensor((1, 33), dtype), B: T.Tensor((13, 33), dtype)):
        with T.Kernel(2, threads=2, is_npu=True) as c:
            x = T.alloc_shared((8, 33), dtype)
            v = T.alloc_shared((1, 33), dtype)
            T.copy(A[c * 8, 0], x)
            T.copy(V, v)
            T.tile.sub(x, x, v)
            x[:, :] = x * (1.0 + v)
            T.copy(x, B[c * 8, 0])

    x, v = X.astype(dtype), np.arange(33, dtype=dtype)[None, :] / 64
    np.testing.assert_allclose(main(x, v), (x - v) * (1 + v), rtol=2e-3, atol=2e-3)


@pytest.mark.few(3)
@pytest.mark.parametrize("op", ["max", "min", "sum"])
@pytest.mark.parametrize("cols", [5, 33])
def test_whole_numbers_are_reduced_in_rows_of_any_length(op: str, cols: int) -> None:
    reduced: Any = getattr(T, f"reduce_{op}")

    @tile_eg.jit(out_idx=[-2, -1])
    @T.prim_func
    def main(A: T.Tensor((13, cols), "int32"), R: T.Tensor((13,), "int32"), C: T.Tensor((2, cols), "int32")):
        with T.Kernel(2, threads=2, is_npu=True) as c:
            x = T.alloc_shared((8, cols), "int32")
            r = T.alloc_shared((8,), "int32")
            s = T.alloc_shared((cols,), "int32")
            T.copy(A[c * 8, 0], x)
            reduced(x, r, dim=1)
            reduced(x, s, dim=0)
            T.copy(r, R[c * 8])
            T.copy(s, C[c, 0])

    x = np.random.default_rng(1).integers(-(2**20), 2**20, (13, cols)).astype(np.int32)
    rows, columns = main(x)
    meaning = getattr(np, op)
    np.testing.assert_array_equal(rows, meaning(x, axis=1))
    np.testing.assert_array_equal(columns, [meaning(part, axis=0) for part in (x[:8], x[8:])])


def handed_over(src: str, dst: str, n: int) -> None:
    T.set_flag(src, dst, n)
    T.wait_flag(src, dst, n)


def room(rows: int) -> Any:
    return T.alloc_ub((rows, 64), "float32")


def test_plain_functions_with_words_are_written_out_where_they_are_called() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = room(4)
            with T.Scope("V"):
                T.copy(A[4 * vid, 0], x)
                handed_over("mte2", "v", 1)
                T.tile.add(x, x, x)
                handed_over("v", "mte3", 1)
                T.copy(x, B[4 * vid, 0])

    x = np.arange(512, dtype=np.float32).reshape(8, 64)
    np.testing.assert_array_equal(main(x), 2 * x)


def test_which_functions_use_words() -> None:
    assert uses_words(handed_over)
    assert uses_words(lambda: handed_over("v", "mte3", 0))
    assert not uses_words(lambda n: T.ceildiv(n, 2) + len("mte3"))


def test_a_text_is_printed_in_its_place(capfd: pytest.CaptureFixture[str]) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=1, is_npu=True) as c:
            x = T.alloc_ub((8, 64), "float32")
            T.copy(A, x)
            T.printf("%s: block %d is 100%% there\n", "copied", c)
            T.copy(x, B)

    main(np.zeros((8, 64), np.float32))
    assert "copied: block 0 is 100% there" in capfd.readouterr().out


def test_bytes_are_multiplied_in_a_kept_kernel_whose_tiles_end_early() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(A: T.Tensor((17, 40), "int8"), B: T.Tensor((20, 40), "int8"), C: T.Tensor((17, 20), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((32, 64), "int8")
            b = T.alloc_L1((32, 64), "int8")
            c = T.alloc_L0C((32, 32), "int32")
            with T.Scope("C"):
                T.copy(A[0, 0], a)
                T.copy(B[0, 0], b)
                T.barrier_all()
                T.gemm_v0(a, b, c, transpose_B=True, init=True)
                T.barrier_all()
                T.copy(c, C[0, 0])

    a, b = (np.random.default_rng(n).integers(-128, 128, (n, 40)).astype(np.int8) for n in (17, 20))
    np.testing.assert_array_equal(main(a, b), a.astype(np.int32) @ b.T.astype(np.int32))
