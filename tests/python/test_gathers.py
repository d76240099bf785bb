"""Indices that are read: rows and blocks of a tensor are loaded, stored and added to where an input says."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tile_eg
import tile_eg.language as T
from tests.python.written import prim_func
from tile_eg import TileError
from tile_eg.chips import known_chips
from tile_eg.frontend.text import load_text
from tile_eg.inputs import drawn_sets
from tile_eg.ir import index as ix
from tile_eg.ir.index_elements import inside_of
from tile_eg.ir.program.parser import parse_program
from tile_eg.ir.reference import run_kernel
from tile_eg.report.compare import compare
from tile_eg.search.compiler import expected, lower

jit = tile_eg.jit(out_idx=[-1], effort="none")
SIZE = st.sampled_from([1, 2, 7, 16, 31, 40])
SETTINGS = settings(deadline=None, derandomize=True, max_examples=5)


@jit
def rows(N, V, D, BN=16):
    @T.prim_func
    def rows(W: T.Tensor((V, D), "float16"), Idx: T.Tensor((N,), "int32"), Y: T.Tensor((N, D), "float16")):
        with T.Kernel(T.ceildiv(N, BN)) as b:
            idx = T.alloc_shared((BN,), "int32")
            y = T.alloc_shared((BN, D), "float16")
            T.copy(Idx[b * BN], idx)
            for i in range(BN):
                T.copy(W[idx[i], :], y[i, :])
            T.copy(y, Y[b * BN, 0])

    return rows


@jit
def scattered(N, D, BN=8):
    @T.prim_func
    def scattered(X: T.Tensor((N, D), "float32"), Idx: T.Tensor((N,), "int32"), Y: T.Tensor((N, D), "float32")):
        with T.Kernel(N // BN) as b:
            x = T.alloc_shared((BN, D), "float32")
            T.copy(X[b * BN, 0], x)
            for i in range(BN):
                T.copy(x[i, :], Y[Idx[b * BN + i], :])

    return scattered


@jit
def summed(N, V, D, BN=8):
    @T.prim_func
    def summed(X: T.Tensor((N, D), "float32"), Idx: T.Tensor((N,), "int32"), Y: T.Tensor((V, D), "float32")):
        with T.Kernel(N // BN) as b:
            idx = T.alloc_shared((BN,), "int32")
            x = T.alloc_shared((BN, D), "float32")
            T.copy(Idx[b * BN], idx)
            T.copy(X[b * BN, 0], x)
            for i in range(BN):
                T.atomic_add(Y[idx[i], :], x[i, :])

    return summed


@jit
def scores(S, pages, D, H=16, page=32):
    @T.prim_func
    def scores(
        Q: T.Tensor((H, D), "float16"),
        K: T.Tensor((pages, page, D), "float16"),
        Table: T.Tensor((1, S // page), "int32"),
        Y: T.Tensor((H, S), "float32"),
    ):
        with T.Kernel(1) as b:
            q = T.alloc_shared((H, D), "float16")
            k = T.alloc_shared((page, D), "float16")
            s = T.alloc_fragment((H, page), "float32")
            table = T.alloc_shared((S // page,), "int32")
            T.copy(Q, q)
            T.copy(Table[b, :], table)
            for i in T.Pipelined(S // page, num_stages=2):
                block = table[i]
                T.copy(K[block, :, :], k)
                T.gemm(q, k, s, transpose_B=True, init=True)
                T.copy(s, Y[0, i * page])

    return scores


@jit
def products(N, V, D, H=16, BN=16):
    @T.prim_func
    def products(
        Q: T.Tensor((H, D), "float16"),
        K: T.Tensor((V, D), "float16"),
        Idx: T.Tensor((N,), "int32"),
        Y: T.Tensor((H, N), "float32"),
    ):
        with T.Kernel(N // BN) as b:
            q = T.alloc_shared((H, D), "float16")
            k = T.alloc_shared((BN, D), "float16")
            s = T.alloc_fragment((H, BN), "float32")
            T.copy(Q, q)
            for i, j in T.Parallel(BN, D):
                k[i, j] = K[Idx[b * BN + i], j]
            T.gemm(q, k, s, transpose_B=True, init=True)
            T.copy(s, Y[0, b * BN])

    return products


@jit
def by_page(N, pages, D, page=8, BN=16):
    @T.prim_func
    def by_page(
        K: T.Tensor((pages * page, D), "float16"),
        Table: T.Tensor((pages,), "int32"),
        Idx: T.Tensor((N,), "int32"),
        Y: T.Tensor((N, D), "float16"),
    ):
        with T.Kernel(N // BN) as b:
            k = T.alloc_shared((BN, D), "float16")
            for i, j in T.Parallel(BN, D):
                k[i, j] = K[Table[Idx[b * BN + i] // page] * page + Idx[b * BN + i] % page, j]
            T.copy(k, Y[b * BN, 0])

    return by_page


RNG = np.random.default_rng(0)


def numbers(*shape: int, dtype: str = "float16") -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(dtype)


def indices(below: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, below, shape).astype(np.int32)


@pytest.mark.slow
@SETTINGS
@given(SIZE, SIZE, SIZE)
def test_rows_are_gathered_at_any_size(n: int, v: int, d: int) -> None:
    w, idx = numbers(v, d), indices(v, n)
    np.testing.assert_array_equal(rows(n, v, d)(w, idx), w[idx])


@pytest.mark.slow
def test_rows_are_stored_where_an_input_says() -> None:
    x, idx = numbers(32, 24, dtype="float32"), RNG.permutation(32).astype(np.int32)
    np.testing.assert_array_equal(scattered(32, 24)(x, idx)[idx], x)


@pytest.mark.slow
def test_rows_that_meet_are_added_up() -> None:
    x, idx, want = numbers(32, 24, dtype="float32"), indices(5, 32), np.zeros((5, 24), np.float32)
    np.add.at(want, idx, x)
    np.testing.assert_allclose(summed(32, 5, 24)(x, idx), want, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_blocks_of_a_paged_tensor_go_straight_to_l1() -> None:
    q, k, table = numbers(16, 64), numbers(9, 32, 64), indices(9, 1, 4)
    kernel = scores(128, 9, 64)
    want = q.astype(np.float32) @ k[table[0]].reshape(-1, 64).astype(np.float32).T
    np.testing.assert_allclose(kernel(q, k, table), want, atol=1e-2)
    assert "Table_gm.GetValue(" in kernel.get_kernel_source()
    assert "DataCopyPad" not in kernel.get_kernel_source()


@pytest.mark.slow
def test_rows_go_straight_to_l1() -> None:
    q, k, idx = numbers(16, 64), numbers(50, 64), indices(50, 32)
    kernel = products(32, 50, 64)
    want = q.astype(np.float32) @ k[idx].astype(np.float32).T
    np.testing.assert_allclose(kernel(q, k, idx), want, atol=1e-2)
    assert "KERNEL_TYPE_AIC_ONLY" in kernel.get_kernel_source()


@pytest.mark.slow
def test_an_index_may_pick_an_index() -> None:
    k, table, idx = numbers(7 * 8, 24), RNG.permutation(7).astype(np.int32), indices(56, 32)
    np.testing.assert_array_equal(by_page(32, 7, 24)(k, table, idx), k[table[idx // 8] * 8 + idx % 8])


@pytest.mark.parametrize("outside", [-1, 40, 1 << 30])
def test_an_index_outside_is_told_with_its_value_and_line(outside: int) -> None:
    idx = indices(40, 32)
    idx[17] = outside
    told = rf"an index of `W` that is read is {outside}: dimension 0 has 40 elements(.|\n)*W\[idx\[i\], :\]"
    with pytest.raises(TileError, match=told):
        rows(32, 40, 16)(numbers(40, 16), idx)


EMBEDDING = """
kernel embedding[N=40, V=100, D=48, BN=16](W: f16[V, D], idx: i32[N]) -> E: f16[N, D] {
  grid b = ceildiv(N, BN)
  shared x: f16[BN, D], i: i32[BN]
  i = idx[b*BN]
  parallel (r, c) in (BN, D) { x[r, c] = W[i[r], c] }
  E[b*BN, 0] = x
}
"""


@pytest.fixture(scope="module")
def embedding():
    return load_text(EMBEDDING).instantiate()


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("chip", known_chips())
def test_text_gathers_too(chip: str, embedding) -> None:
    w, idx = numbers(100, 48), indices(100, 40)
    got = lower(embedding, chip).run({"W": w, "idx": idx})
    np.testing.assert_array_equal(got["E"], w[idx])


def test_the_sequential_meaning_gathers(embedding) -> None:
    w, idx = numbers(100, 48), indices(100, 40)
    np.testing.assert_array_equal(expected(embedding, {"W": w, "idx": idx})["E"].value, w[idx])


@pytest.mark.slow
def test_a_program_with_gathers_reads_back(embedding) -> None:
    program = lower(embedding).program
    assert parse_program(str(program)).vector == program.vector


@pytest.mark.slow
def test_each_row_that_is_gathered_is_an_instruction_in_the_prediction(embedding) -> None:
    rows = EMBEDDING.replace("W[i[r], c]", "W[r, c]")
    gathered, strided = (lower(k).cost.microseconds for k in (embedding, load_text(rows).instantiate()))
    assert gathered > strided


ATTENTION = """
kernel attention[N=50, V=40, D=48, H=16, BN=16](Q: f16[H, D], KV: f16[V, D], idx: i32[N]) -> O: f32[H, D] {
  grid b = 1
  shared q: f16[H, D], k: f16[BN, D], i: i32[BN], p: f16[H, BN]
  fragment s: f32[H, BN], o: f32[H, D] = 0
  q = Q[0, 0]
  for t in pipelined(ceildiv(N, BN)) {
    i = idx[t*BN]
    parallel (r, c) in (BN, D) { k[r, c] = KV[i[r], c] }
    s = q @ k.T
    p = s * 0.1
    o += p @ k
  }
  O[0, 0] = o
}
"""
SUMS = """
kernel sums[N=61, V=70, D=40, BN=16](X: f32[N, D], idx: i32[N]) -> O: f32[V, D] {
  grid b = ceildiv(N, BN)
  shared x: f32[BN, D], i: i32[BN]
  i = idx[b*BN]
  x = X[b*BN, 0]
  x = exp(x)
  for r in serial(BN) { atomic O[i[r], :] += x[r, :] }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "chip", [c if c in ("910B2", "950") else pytest.param(c, marks=pytest.mark.long) for c in known_chips()]
)
@pytest.mark.parametrize("text", [ATTENTION, SUMS], ids=["attention", "sums"])
def test_every_schedule_kept_gathers_alike(text: str, chip: str) -> None:
    kernel = load_text(text).instantiate()
    drawn = drawn_sets(kernel, ["uniform"], 0)[0]
    for candidate in lower(kernel, chip).candidates:
        got = candidate.planned.run(drawn.arrays).outputs
        assert [c for c in compare(got, drawn.meant) if not c.good] == []


def refused(body: str) -> str:
    head = "kernel f(A: f16[16, 16], i: i32[16], v: f16[16]) -> C: f16[16, 16]"
    text = f"{head} {{ grid b = 1 shared x: f16[16, 16], j: i32[16] {body} C[0, 0] = x }}"
    with pytest.raises(TileError) as error:
        lower(load_text(text).instantiate())
    return error.value.message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "parallel (r, c) in (16, 16) { x[r, c] = A[i[r*2], c] }",
            "an index is read outside of `i`: an index takes the value 30, dimension 0 has 16 elements",
        ),
        ("parallel (r, c) in (16, 16) { x[r, c] = A[v[r], c] }", "an index or a size has to be a number, not a tile"),
        ("parallel (r, c) in (16, 16) { x[r, c] = A[j[r], c] }", "`j` is read before it is written"),
        (
            "j = i[0] j = j + j parallel (r, c) in (16, 16) { x[r, c] = A[j[r], c] }",
            "an index is read from `j`, which holds what is computed here: not supported yet",
        ),
    ],
)
def test_what_is_no_index_is_told(body: str, message: str) -> None:
    assert refused(body) == message


def written(body: str) -> str:
    lines = f"""
        @T.prim_func
        def f(A: T.Tensor((64, 16), "float32"), I: T.Tensor((16,), "int32"), C: T.Tensor((16, 16), "float32")):
            with T.Kernel(1) as b:
                x = T.alloc_shared((16, 16), "float32")
                i = T.alloc_shared((16,), "int32")
                T.copy(I, i)
                {body}
                T.copy(x, C)
    """
    return textwrap.dedent(lines)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("n = i[3] + 1; T.copy(I, i); T.copy(A[n, 0], x)", "n was computed from i, which may have changed since"),
    ],
)
def test_what_is_read_decides_places_alone(body: str, message: str) -> None:
    with pytest.raises(TileError) as error:
        tile_eg.jit(prim_func(written(body)))
    assert error.value.message == message


@pytest.mark.slow
@pytest.mark.parametrize(("first", "step"), [(8, 1), (1, 2)])
def test_a_part_of_gathered_rows_has_their_indices(first: int, step: int) -> None:
    @T.prim_func
    def part(A: T.Tensor((64, 32), "float32"), Idx: T.Tensor((16,), "int32"), C: T.Tensor((8, 16), "float32")):
        with T.Kernel(1) as b:
            x, y = T.alloc_shared((16, 32), "float32"), T.alloc_shared((8, 16), "float32")
            for i in T.serial(16):
                T.copy(A[Idx[i], 0], x[i, :])
            for i, j in T.Parallel(8, 16):
                y[i, j] = x[i * step + first, j + 16]
            T.copy(y, C[b, 0])

    a, i = numbers(64, 32, dtype="float32"), indices(64, 16)
    np.testing.assert_array_equal(jit(part)(a, i), a[i[first::step][:8], 16:])


@pytest.mark.slow
@pytest.mark.parametrize("step", [-1, 1])
def test_a_row_beside_one_that_is_read(step: int) -> None:
    @T.prim_func
    def beside(A: T.Tensor((64, 16), "float32"), Idx: T.Tensor((16,), "int32"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1) as b:
            x = T.alloc_shared((16, 16), "float32")
            for i, j in T.Parallel(16, 16):
                x[i, j] = A[Idx[i], j] + A[Idx[i] + step, j]
            T.copy(x, C[b, 0])

    a, i = numbers(64, 16, dtype="float32"), indices(62, 16) + 1
    np.testing.assert_array_equal(jit(beside)(a, i), a[i] + a[i + step])


def test_drawn_indices_lie_inside() -> None:
    kernel = by_page(32, 7, 24).kernel
    drawn = drawn_sets(kernel, ["uniform"], 0)[0].arrays
    assert (drawn["Table"] >= 0).all() and (drawn["Table"] < 7).all()
    assert (drawn["Idx"] >= 0).all() and (drawn["Idx"] < 56).all()


@pytest.mark.slow
def test_a_row_of_a_page_that_is_looked_up() -> None:
    @T.prim_func
    def paged(
        K: T.Tensor((9, 8, 2, 16), "float16"), Table: T.Tensor((4,), "int32"), C: T.Tensor((32, 16), "float16")
    ):  # the pages of a sequence of 32
        with T.Kernel(1) as b:
            x = T.alloc_shared((32, 16), "float16")
            for i, j in T.Parallel(32, 16):
                x[i, j] = K[Table[i // 8], i % 8, 1, j]
            T.copy(x, C[b, 0])

    k, table = numbers(9, 8, 2, 16), indices(9, 4)
    np.testing.assert_array_equal(jit(paged)(k, table), k[table][:, :, 1].reshape(32, 16))


@pytest.mark.slow
def test_an_index_may_be_clamped() -> None:
    @T.prim_func
    def clamped(A: T.Tensor((64, 16), "float32"), Idx: T.Tensor((16,), "int32"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1) as b:
            x = T.alloc_shared((16, 16), "float32")
            for i, j in T.Parallel(16, 16):
                x[i, j] = A[T.min(T.max(Idx[i], 0), 63), j]
            T.copy(x, C[b, 0])

    a, idx = numbers(64, 16, dtype="float32"), indices(200, 16) - 70
    np.testing.assert_array_equal(jit(clamped)(a, idx), a[np.clip(idx, 0, 63)])


def test_an_element_is_no_larger_than_what_it_picks_from() -> None:
    page = ix.read("table", ix.var("k")) * 64 + ix.var("k")
    assert ix.bounds(inside_of(page, 1023), {"k": (0, 63)}) == (0, 15 * 64 + 63)


def test_two_elements_that_are_not_known_are_not_known_to_be_equal() -> None:
    from tile_eg.frontend.ranges import surely_equal

    a, b = ix.read("t", 0, 9), ix.read("t", 1, 9)
    assert surely_equal(a, a, {})
    assert not surely_equal(a, b, {})


def gathered_by_halves(whole: bool):
    """Each vector core gathers half of the rows into a workspace, from where the cube core takes all of them."""

    @T.prim_func
    def main(
        Q: T.Tensor((32, 64), "float16"), KV: T.Tensor((100, 64), "float16"), Idx: T.Tensor((3, 32), "int32"),
        C: T.Tensor((3, 32, 32), "float32"), W: T.Tensor((3, 32, 64), "float16"),
    ):  # fmt: skip
        with T.Kernel(3, is_npu=True) as (cid, vid):
            q = T.alloc_L1([32, 64], "float16")
            rows = T.alloc_L1([32, 64], "float16")
            c = T.alloc_L0C([32, 32], "float")
            idx = T.alloc_ub([32 if whole else 16], "int32")
            row = T.alloc_ub([64], "float16")
            T.copy(Q[0, 0], q)
            if whole:
                T.copy(Idx[cid, :], idx)
            else:
                T.copy(Idx[cid, vid * 16 : vid * 16 + 16], idx)
            for i in range(16):
                if whole:
                    T.copy(KV[idx[i + vid * 16], :], row)
                else:
                    T.copy(KV[idx[i], :], row)
                T.copy(row, W[cid, i + vid * 16, :])
            T.copy(W[cid, 0:32, 0:64], rows)
            T.gemm_v0(q, rows, c, transpose_B=True, init=True)
            T.copy(c, C[cid, 0, 0])

    return tile_eg.jit(main, out_idx=[3], workspace_idx=[4], effort="none")


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False], ids=["all indices on both", "half of them on each"])
def test_rows_that_each_half_gathers_are_those_of_one_tile(whole: bool) -> None:
    q, kv, idx = numbers(32, 64), numbers(100, 64), np.random.default_rng(5).integers(0, 100, (3, 32)).astype(np.int32)
    got = gathered_by_halves(whole)(q, kv, idx)
    want = np.stack([q.astype(np.float32) @ kv[i].astype(np.float32).T for i in idx])
    assert np.allclose(got, want, atol=1e-2)


@pytest.mark.slow
def test_rows_that_are_stored_to_one_place_are_a_mistake_of_the_indices() -> None:
    @jit
    @T.prim_func
    def scattered(X: T.Tensor((16, 64), "float32"), Idx: T.Tensor((16,), "int32"), Y: T.Tensor((16, 64), "float32")):
        with T.Kernel(2) as b:
            x = T.alloc_shared((8, 64), "float32")
            T.copy(X[b * 8, 0], x)
            for i, j in T.Parallel(8, 64):
                Y[Idx[b * 8 + i], j] = x[i, j]

    x, at = np.arange(1024, dtype=np.float32).reshape(16, 64), np.arange(16, dtype=np.int32)[::-1].copy()
    np.testing.assert_array_equal(scattered(x, at), x[::-1])
    at[3] = at[9]
    with pytest.raises(TileError, match="`Y` is stored to twice in one place: an index that is read is 6 more than once"):
        scattered(x, at)


@pytest.mark.parametrize(("made", "index"), [("// 20", lambda at: at // 20), ("% 10", lambda at: at % 10)])
def test_rows_behind_the_last_index_are_nowhere_whatever_is_computed_of_it(made, index):
    text = f"""kernel k[R=37, N=32, V=10](W: f32[V, N], at: i32[R]) -> S: f32[3, N] {{
      grid b = ceildiv(R, 16)
      shared y: f32[16, N], s: f32[N]
      parallel (i, j) in (16, N) {{ y[i, j] = W[at[b*16 + i] {made}, j] }}
      s = colsum(y)
      S[b, 0] = s
    }}"""
    rng = np.random.default_rng(0)
    w, at = rng.standard_normal((10, 32)).astype(np.float32), rng.integers(0, 200, 37).astype(np.int32)
    want = [w[index(at[n : n + 16])].sum(0) for n in (0, 16, 32)]
    got = run_kernel(load_text(text).instantiate(), {"W": w, "at": at})["S"]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_an_index_that_a_mask_leaves_out_is_kept_inside_as_the_message_says() -> None:
    def kernel_with(index: str) -> Any:
        return prim_func(f"""@T.prim_func
def f(W: T.Tensor((10,), "float32"), Q: T.Tensor((16,), "int32"), O: T.Tensor((16,), "float32")):
    with T.Kernel(1) as b:
        q, o = T.alloc_shared((16,), "int32"), T.alloc_shared((16,), "float32")
        T.copy(Q, q)
        for j in T.Parallel(16):
            o[j] = T.if_then_else(q[j] * 2 >= 0, W[{index}], 0.0)
        T.copy(o, O)
""")

    w, q = np.arange(1, 11, dtype=np.float32), np.arange(-4, 12, dtype=np.int32) % 10 - (np.arange(16) == 5) * 11
    q = q.astype(np.int32)
    with pytest.raises(TileError, match=r"(.|\n)*keep it inside by max\(min\(i, 9\), 0\)"):
        tile_eg.jit(out_idx=[-1], effort="none")(kernel_with("q[j]"))(w, q)
    got = tile_eg.jit(out_idx=[-1], effort="none")(kernel_with("max(min(q[j], 9), 0)"))(w, q)
    np.testing.assert_array_equal(got, np.where(q >= 0, w[q], 0))
