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


@pytest.mark.few(3)
@pytest.mark.slow(but=1)
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


@pytest.mark.slow
@pytest.mark.few(2)
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


@pytest.mark.slow
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


EMPTY = {
    "sum": "y = colsum(x)",
    "max": "y = max(colmax(x), -2)",
    "loop": "y = 1  for k in serial(2) { z = X[row[t] + 8*k : row[t] + rows[t], 0:N]  y += colsum(z * 2) }",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "meant"),
    [
        ("sum", lambda x: x.sum(0)),
        ("max", lambda x: x.max(0, initial=-2)),
        ("loop", lambda x: 1 + 2 * x[:8].sum(0) + 2 * x[8:].sum(0)),
    ],
)
def test_a_reduction_of_no_elements_leaves_nothing_of_another_block(how, meant):
    text = f"""kernel k[M=40, N=24, T=4](X: f32[M, N], row: i32[T], rows: i32[T]) -> Y: f32[T, N] {{
      grid t = T
      shared x: f32[16, N], z: f32[8, N]
      fragment y: f32[N]
      x = X[row[t] : row[t] + rows[t], 0:N]
      {EMPTY[how]}
      Y[t, 0] = y }}"""
    x = np.random.default_rng(0).uniform(-1, 1, (40, 24)).astype(np.float32)
    given = {"X": x, "row": np.array([0, 13, 13, 14], np.int32), "rows": np.array([13, 0, 1, 16], np.int32)}
    y = lower(load_text(text, "k.tile").instantiate({}), search=search_options(effort="none")).run(given)["Y"]
    want = [meant(x[r : r + n]) for r, n in zip(given["row"], given["rows"], strict=True)]
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize(("dtype", "out"), [("f16", "f32"), ("i8", "i32"), ("f32", "f32")])
def test_a_product_of_no_numbers_is_0(dtype, out, chip):
    text = f"""kernel k(A: {dtype}[64, 64], B: {dtype}[64, 64], n: i32[4]) -> C: {out}[64, 64] {{
      grid t = 4
      shared a: {dtype}[16, 32], b: {dtype}[32, 64]
      fragment c: {out}[16, 64] = 0
      for k in pipelined(2) {{
        a = A[t*16 : t*16 + 16, k*32 : n[t]]
        b = B[k*32 : n[t], 0:64]
        c += a @ b
      }}
      C[t*16, 0] = c }}"""
    rng = np.random.default_rng(0)
    numpy = {"f16": np.float16, "i8": np.int8, "f32": np.float32}[dtype]
    a, b = (rng.integers(-4, 5, (64, 64)).astype(numpy) for _ in range(2))
    n = np.array([0, 17, 32, 64], np.int32)
    found = lower(load_text(text, "k.tile").instantiate({}), chip, search=search_options(effort="none"))
    c = found.run({"A": a, "B": b, "n": n})["C"]
    want = [a[16 * t : 16 * t + 16, : n[t]].astype(np.float32) @ b[: n[t]].astype(np.float32) for t in range(4)]
    np.testing.assert_array_equal(c, np.concatenate(want))


@pytest.mark.slow
def test_sequences_of_different_lengths_attend_to_themselves():
    """The second tile of keys of a short sequence has none, and changes nothing."""
    text = """kernel k[T=40, D=64](Q: f16[T, 2, D], K: f16[T, D], V: f16[T, D], ends: i32[5]) -> O: f32[T, 2, D] {
      grid (b, h) = (4, 2)
      shared q: f16[32, D], k: f16[16, D], v: f16[16, D]
      fragment s: f32[32, 16], m: f32[32] = -inf, l: f32[32] = 0, n: f32[32], a: f32[32], o: f32[32, D] = 0
      q = Q[ends[b] : ends[b + 1], h, :]
      for j in serial(2) {
        k = K[ends[b] + j*16 : ends[b + 1], 0:D]
        v = V[ends[b] + j*16 : ends[b + 1], 0:D]
        s = q @ k.T
        n = max(m, rowmax(s))
        a = exp(m - n)
        s = exp(s - n[:, None])
        l = l*a + rowsum(s)
        o = o * a[:, None]
        o += f16(s) @ v
        m = n
      }
      o = o / l[:, None]
      O[ends[b] : ends[b + 1], h, :] = o }"""
    rng = np.random.default_rng(0)
    q, k, v = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((40, 2, 64), (40, 64), (40, 64)))
    ends = np.array([0, 5, 6, 23, 40], np.int32)
    given = {"Q": q, "K": k, "V": v, "ends": ends}
    o = lower(load_text(text, "k.tile").instantiate({}), search=search_options(effort="none")).run(given)["O"]
    for first, end in zip(ends, ends[1:], strict=False):
        for h in range(2):
            p = np.exp(q[first:end, h].astype(np.float64) @ k[first:end].astype(np.float64).T)
            np.testing.assert_allclose(o[first:end, h], p / p.sum(1, keepdims=True) @ v[first:end], rtol=1e-2, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "meant"), [("x[i, :]", lambda x: x), ("exp(x[i, :])", np.exp), ("x[i, :] * v[i]", lambda x: 2 * x)]
)
def test_a_sum_of_no_elements_in_an_element_loop_is_0(value, meant):
    text = f"""kernel k(X: f32[16, 40], n: i32[4]) -> Y: f32[16] {{
      grid t = 4
      shared x: f32[4, 40]
      fragment y: f32[4], v: f32[4] = 2
      x = X[t*4 : t*4 + 4, 0 : n[t]]
      for i in serial(4) {{ y[i] = sum({value}) }}
      Y[t*4] = y }}"""
    x, n = np.random.default_rng(0).uniform(-1, 1, (16, 40)).astype(np.float32), np.array([0, 3, 40, 17], np.int32)
    y = lower(load_text(text, "k.tile").instantiate({}), search=search_options(effort="none")).run({"X": x, "n": n})["Y"]
    want = [meant(x[t * 4 : t * 4 + 4, : n[t]]).sum(1) for t in range(4)]
    np.testing.assert_allclose(y, np.concatenate(want), rtol=1e-5, atol=1e-5)


NOTHING = """
kernel k[T=4, D=32](X: f32[40, D], W: f32[40, 16], s: i32[T], n: i32[T]) -> (
    S: f32[T, D], L: f32[T, D], P: f32[16, D], C: f32[T, D]) {
  grid t = T
  shared x: f32[16, D], w: f32[16, 16]
  fragment y: f32[D] = 0, z: f32[D], p: f32[16, D]
  x = X[s[t] : s[t] + min(n[t], 16), 0]
  w = W[s[t] : s[t] + min(n[t], 16), 0]
  y = y + colsum(exp(x) * 2)
  z = colmax(x)
  p = w.T @ x
  S[t, 0] = y
  L[t, 0] = z
  atomic P[0, 0] += p
  C[t, 0] = y * 2 + 1
}
"""


@pytest.mark.slow
def test_a_sum_over_no_elements_is_0_in_the_kernel_and_in_its_meaning() -> None:
    kernel, random = load_text(NOTHING).instantiate(), np.random.default_rng(0)
    x, w = (random.uniform(-1, 1, shape).astype(np.float32) for shape in ((40, 32), (40, 16)))
    s, n = np.array([0, 5, 20, 30], np.int32), np.array([0, 3, 16, 0], np.int32)
    parts = [slice(a, a + b) for a, b in zip(s, n, strict=True)]
    sums = np.stack([2 * np.exp(x[p]).sum(axis=0) for p in parts])
    want = {
        "S": sums, "L": np.stack([x[p].max(axis=0, initial=-np.inf) for p in parts]),
        "P": np.sum([w[p].T @ x[p] for p in parts], axis=0), "C": 2 * sums + 1,
    }  # fmt: skip
    arrays = {"X": x, "W": w, "s": s, "n": n}
    for found in (meaning(kernel, arrays), lower(kernel).run(arrays)):
        for name, value in want.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4)
