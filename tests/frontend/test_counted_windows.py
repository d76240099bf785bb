"""Windows of which the kernel finds out how much is meant: `C[s : s + n[t], 0]`, and stores below such a number."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg import TileError
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.printer import print_kernel
from tile_eg.ir.kernel import Kernel
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning

HEAD = """
kernel grouped[G=3, M=90, N=48, K=70, T=4, BM=32](
  A: f16[M, K], B: f16[G, K, N], group: i32[T], row: i32[T], rows: i32[T]
) -> C: f16[M, N] {
  grid t = T
  shared   a: f16[BM, 32], b: f16[32, N]
  fragment c: f32[BM, N] = 0
  for k in pipelined(ceildiv(K, 32)) {
    a = LOAD
    b = B[group[t], k*32, 0]
    c += a @ b
  }
  STORE
}
"""
WHOLE, PART = "A[row[t], k*32]", "A[row[t] : row[t] + rows[t], k*32]"
STORES = {
    "slice": (WHOLE, "C[row[t] : row[t] + rows[t], 0] = c"),
    "of what is loaded": (PART, "C[row[t], 0] = c"),
    "both": (PART, "C[row[t] : row[t] + rows[t], 0] = c"),
    "limited": (WHOLE, "C[row[t] : min(row[t] + BM, row[t] + rows[t]), 0:N] = c"),
    "branch": (WHOLE, "parallel (i, j) in (BM, N) { if i < rows[t] { C[row[t] + i, j] = c[i, j] } }"),
    "computed in a branch": (WHOLE, "parallel (i, j) in (BM, N) { if rows[t] > i { C[row[t] + i, j] = relu(c[i, j]) } }"),
    "end": (WHOLE, "parallel (i, j) in (BM, N) { if row[t] + i < row[t] + rows[t] { C[row[t] + i, j] = c[i, j] } }"),
}


def kernel(how: str) -> Kernel:
    load, store = STORES[how]
    return load_text(HEAD.replace("LOAD", load).replace("STORE", store), "grouped.tile").instantiate({})


@cache
def compiled(how: str) -> Lowered:
    return lower(kernel(how), search=search_options(effort="none"))


def inputs(rows: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Groups of so many rows each, one behind the other; two tiles for the first of them."""
    rng = np.random.default_rng(0)
    first = [0, *np.cumsum(rows)[:-1]]
    return {
        "A": rng.uniform(-1, 1, (90, 70)).astype(np.float16), "B": rng.uniform(-1, 1, (3, 70, 48)).astype(np.float16),
        "group": np.array([0, 1, 2, 2], np.int32), "row": np.array(first, np.int32), "rows": np.array(rows, np.int32),
    }  # fmt: skip


def product(x: dict[str, np.ndarray]) -> np.ndarray:
    groups = zip(x["group"], x["row"], x["rows"], strict=True)
    return np.concatenate([x["A"][r : r + n].astype(np.float32) @ x["B"][g].astype(np.float32) for g, r, n in groups])


@pytest.mark.parametrize("how", STORES)
def test_rows_of_another_group_are_not_stored(how):
    x = inputs((31, 17, 32, 10))
    want = np.maximum(product(x), 0) if "computed" in how else product(x)
    for found in (meaning(kernel(how), x)["C"], compiled(how).run(x)["C"]):
        np.testing.assert_allclose(found, want, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("rows", [(1, 32, 16, 2), (0, 32, 32, 0)])
def test_a_group_may_have_one_row_or_none(rows):
    x = inputs(rows)
    for found in (meaning(kernel("slice"), x)["C"], compiled("slice").run(x)["C"]):
        np.testing.assert_allclose(found[: sum(rows)], product(x), rtol=2e-3, atol=2e-2)
        assert np.isnan(found[sum(rows) :]).all()


def test_no_more_rows_are_loaded_and_computed_than_stored():
    assert "Nd2NzParams(1, validRows" in compiled("slice").source


def test_a_length_beyond_the_tile_is_the_tile():
    x = inputs((32, 32, 16, 10)) | {"rows": np.array((32, 32, 16, 99), np.int32)}
    x["row"][3] = 80
    np.testing.assert_allclose(compiled("slice").run(x)["C"][80:], product(x)[80:], rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("how", ["slice", "both sides", "branch", "element"])
def test_the_same_in_python(how):
    @tile_eg.jit(effort="none")
    def part(BM=16, N=32):
        @T.prim_func
        def part(X: T.Tensor((64, N), "float32"), meta: T.Tensor((3, 2), "int32"), Y: T.Tensor((64, N), "float32")):
            with T.Kernel(3) as t:
                x = T.alloc_shared((BM, N), "float32")
                start = meta[t, 0]
                rows = meta[t, 1]
                T.copy(X[start, 0], x)
                if how == "slice":
                    T.copy(x, Y[start : start + rows, 0:N])
                elif how == "both sides":
                    T.copy(x[:rows, :], Y[start : start + rows, :])
                elif how == "branch":
                    for i, j in T.Parallel(BM, N):
                        if i < rows:
                            Y[start + i, j] = x[i, j]
                else:
                    for i, j in T.Parallel(BM, N):
                        if start + i < start + rows:
                            Y[start + i, j] = x[i, j] * 2

        return part

    x = np.random.default_rng(0).uniform(-1, 1, (64, 32)).astype(np.float32)
    meta = np.array([(0, 16), (16, 3), (40, 9)], np.int32)
    y, want = np.full_like(x, 7), np.full_like(x, 7)
    part()(x, meta, y)
    for start, rows in meta:
        want[start : start + rows] = x[start : start + rows] * (2 if how == "element" else 1)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize(
    ("load", "store", "fault"),
    [
        ("A[t : t*16, k*32]", "C[row[t], 0] = c", "the length of this slice varies: t*15"),
        (WHOLE, "C[row[t] : row[t] + rows[t], 0:16] = c", "has 16 elements in dimension 1, and the other side has 48"),
        ("A[row[t], k*32]", "C[row[t], 0] = c[0 : rows[t], 0:N]", "the length of this slice varies: rows[t]"),
    ],
)
def test_what_cannot_be_meant_is_told(load, store, fault):
    with pytest.raises(TileError) as told:
        load_text(HEAD.replace("LOAD", load).replace("STORE", store), "grouped.tile").instantiate({})
    assert fault in str(told.value)


def test_a_result_that_a_tensor_is_too_small_for_is_cut_where_it_is_stored():
    text = (
        HEAD.replace("LOAD", "A[t*BM, k*32]").replace("STORE", "C[t*BM, 0] = c").replace("-> C: f16[M, N]", "-> C: f16[100, N]")
    )
    k = load_text(text.replace("T=4", "T=4").replace("A: f16[M, K]", "A: f16[128, K]"), "grouped.tile").instantiate({})
    x = inputs((31, 17, 32, 10)) | {"A": np.random.default_rng(1).uniform(-1, 1, (128, 70)).astype(np.float16)}
    ran = lower(k, search=search_options(effort="none")).run(x)["C"]
    np.testing.assert_allclose(ran, meaning(k, x)["C"], rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("how", ["slice", "both", "branch"])
def test_what_is_meant_is_printed(how):
    text = print_kernel(kernel(how))
    assert "row[t]:row[t] + rows[t]" in text
    assert print_kernel(load_text(text, "printed.tile").instantiate({})) == text
