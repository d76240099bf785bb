"""Kernels that the search has no form for are done in the order of their statements: branches by what is read, shared windows."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.search.kept_lifetimes import placed

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
RNG = np.random.default_rng(0)


@functools.cache
def block_sparse(loaded: bool):
    @T.prim_func
    def main(
        A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), Mask: T.Tensor((2, 2, 4), "int8"),
        C: T.Tensor((64, 64), "float16"),
    ):  # fmt: skip
        with T.Kernel(4, is_npu=True) as (cid, _):
            bx, by = cid // 2, cid % 2
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float")
            m = T.alloc_shared((4,), "int8")
            T.copy(Mask[bx, by, :], m)
            for k in T.serial(4):
                if m[k] if loaded else Mask[bx, by, k]:
                    T.copy(A[bx * 32, k * 32], a)
                    T.copy(B[k * 32, by * 32], b)
                    T.gemm_v0(a, b, c, init=(k == 0))
            T.copy(c, C[bx * 32, by * 32])

    return tile_eg.compile(main, out_idx=[-1])


@pytest.mark.slow
@pytest.mark.parametrize("loaded", [False, True])
def test_a_mask_that_is_read_says_which_steps_are_done(loaded: bool) -> None:
    a, b = (RNG.uniform(-1, 1, shape).astype(np.float16) for shape in ((64, 128), (128, 64)))
    mask = RNG.integers(-1, 2, (2, 2, 4)).astype(np.int8)
    mask[:, :, 0] = 1
    ones = np.kron((mask != 0).transpose(0, 2, 1), np.ones((32, 32, 1)))  # rows of A by columns of A, for each column of blocks
    want = np.hstack([(a * ones[:, :, n]).astype(np.float32) @ b[:, n * 32 :][:, :32].astype(np.float32) for n in range(2)])
    assert np.allclose(block_sparse(loaded)(a, b, mask), want, atol=1e-2)


@functools.cache
def masked_rows():
    @T.prim_func
    def main(W: T.Tensor((40, 64), "float16"), Idx: T.Tensor((32,), "int32"), Y: T.Tensor((32, 64), "float16")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            idx = T.alloc_ub([8], "int32")
            y = T.alloc_ub([8, 64], "float16")
            z = T.alloc_ub([64], "float16")
            T.tile.fill(z, 0.0)
            T.copy(Idx[cid * 16 + vid * 8], idx)
            for i in T.serial(8):
                n = idx[i]
                if n != -1:
                    T.copy(W[n, :], y[i, :])
                else:
                    T.copy(z, y[i, :])
            T.copy(y, Y[cid * 16 + vid * 8, 0])

    return tile_eg.compile(main, out_idx=[-1])


def masked_inputs():
    index = np.where(RNG.random(32) < 0.3, -1, RNG.integers(0, 40, 32)).astype(np.int32)
    return RNG.uniform(-1, 1, (40, 64)).astype(np.float16), index


@pytest.mark.slow
def test_an_index_under_a_mask_is_not_read() -> None:
    w, index = masked_inputs()
    assert (masked_rows()(w, index) == np.where((index >= 0)[:, None], w[index], 0)).all()


def test_an_index_outside_is_a_finding_with_its_value_and_line() -> None:
    w, index = masked_inputs()
    index[5] = 77
    with pytest.raises(TileError, match=r"out_of_bounds(.|\n)*T.copy\(W\[n, :\], y\[i, :\]\)(.|\n)*W\[77, 0\]"):
        masked_rows()(w, index)


def test_a_note_says_that_nothing_is_searched() -> None:
    assert any("nothing of it is searched" in note.text for note in masked_rows().kernel.notes)


def turned(shift: int = 8):
    """Each vector core stores rows of its own to W, and reads rows that the other one stored; the cube core takes all of them."""

    @T.prim_func
    def main(
        A: T.Tensor((32, 32), "float16"), W: T.Tensor((32, 32), "float16"), X: T.Tensor((32, 32), "float16"),
        C: T.Tensor((32, 32), "float"),
    ):  # fmt: skip
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub([16, 32], "float16")
            w = T.alloc_L1([32, 32], "float16")
            c = T.alloc_L0C([32, 32], "float")
            for _ in T.serial(2):
                T.copy(A[vid * 16, 0], x)
                T.tile.add(x, x, 1.0)
                T.copy(x, W[vid * 16, 0])
                T.copy(W[(1 - vid) * shift, 0], x)
                T.tile.add(x, x, 1.0)
                T.copy(x, X[(1 - vid) * 16, 0])
                T.copy(W[0, 0], w)
                T.gemm_v0(w, w, c, transpose_B=True, init=True)
            T.copy(c, C[0, 0])

    return main


@pytest.mark.slow
def test_cores_meet_where_one_reads_what_another_has_stored() -> None:
    a = RNG.uniform(-1, 1, (32, 32)).astype(np.float16)
    w, x = np.zeros_like(a), np.zeros_like(a)
    c = tile_eg.compile(turned(16), out_idx=[-1])(a, w, x)
    one = (a + np.float16(1)).astype(np.float16)
    assert (w == one).all()
    assert (x == one + np.float16(1)).all()
    assert np.allclose(c, one.astype(np.float32) @ one.astype(np.float32).T, atol=1e-3)


def stored_by_both(differ: bool):
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float16"), Idx: T.Tensor((8,), "int32"), C: T.Tensor((16, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub([16, 32], "float16")
            idx = T.alloc_ub([8], "int32")
            T.copy(Idx[0], idx)
            T.copy(A[0, 0], x)
            if idx[0] > 0:
                T.tile.add(x, x, 1.0)
            if differ and vid == 1:
                T.tile.add(x, x, 1.0)
            T.copy(x, C[vid * 0, 0])

    return main


@pytest.mark.slow
def test_what_both_vector_cores_have_is_stored_by_one() -> None:
    a = RNG.uniform(-1, 1, (16, 32)).astype(np.float16)
    got = tile_eg.compile(stored_by_both(False), out_idx=[-1])(a, np.ones(8, np.int32))
    assert (got == a + np.float16(1)).all()


def test_different_values_at_one_place_are_told() -> None:
    with pytest.raises(TileError, match=r"both vector cores write the same elements of `C`, and their values differ"):
        tile_eg.compile(stored_by_both(True), out_idx=[-1])


def test_a_statement_that_cannot_be_done_so_either_is_told_beside_the_reason() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float16"), Idx: T.Tensor((8,), "int32"), C: T.Tensor((16, 32), "float16")):
        with T.Kernel(1) as _:
            x = T.alloc_shared([16, 32], "float16")
            T.copy(A[0, 0], x)
            if Idx[0] > 0:
                x[0:8, :] = x[4:12, :] * 2.0
            T.copy(x, C[0, 0])

    with pytest.raises(TileError, match=r"no form for a branch by an element(.|\n)*it cannot be done either"):
        tile_eg.compile(main, out_idx=[-1])


@pytest.mark.slow
def test_buffers_that_are_used_one_after_the_other_share_memory() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 96, 128), "float"), Idx: T.Tensor((8,), "int32"), C: T.Tensor((4, 96, 128), "float")):
        with T.Kernel(4, is_npu=True) as (cid, _):
            x = T.alloc_ub([96, 128], "float")
            y = T.alloc_ub([96, 128], "float")
            z = T.alloc_ub([96, 128], "float")
            for k in T.serial(2):
                if Idx[cid] > k:
                    T.copy(A[cid, :, :], x)
                    T.tile.add(y, x, 1.0)
                    T.copy(y, z)
                    T.tile.mul(z, z, 2.0)
                    T.copy(z, C[cid, :, :])

    a = RNG.uniform(-1, 1, (4, 96, 128)).astype(np.float32)
    k = tile_eg.compile(main, out_idx=[-1])
    assert (k(a, np.ones(8, np.int32)) == (a + 1) * 2).all()


def test_what_a_trip_leaves_for_the_next_one_keeps_its_memory() -> None:
    from tile_eg.ir.index import const, var
    from tile_eg.ir.program import Buffer, Instr, Loop, Tile
    from tile_eg.ops.types import F32, Level

    a, b = (Buffer(name, Level.UB, F32, 8, 8, 8) for name in "ab")
    zero = const(0)
    fill = lambda name, row=zero, rows=8: Instr("vdup", Tile(name, row=row), rows=const(rows), cols=const(8))  # noqa: E731
    copy = Instr("vcopy", Tile("b"), (Tile("a"),), rows=const(8), cols=const(8))
    use = Instr("vadds", Tile("a"), (Tile("a"),), rows=const(8), cols=const(8))
    of = lambda body: [x.addresses[0] for x in placed((a, b), (Loop("k", 2, body),), 32)]  # noqa: E731
    assert of((fill("a"), fill("b"))) == [0, 0]
    assert of((use, fill("b"))) == [0, 256]
    assert of((Loop("i", 8, (fill("a", var("i"), 1),)), fill("b"))) == [0, 0]
    assert of((Loop("i", 7, (fill("a", var("i"), 1),)), fill("b"))) == [0, 256]
    assert of((fill("a"), copy)) == [0, 256]


def counted():
    """Adds 1 as often as is read, to half of the rows on each vector core."""

    @T.prim_func
    def main(W: T.Tensor((40, 64), "float32"), Idx: T.Tensor((32,), "int32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            y = T.alloc_ub([4, 64], "float32")
            T.copy(W[vid * 4, 0], y)
            for _ in T.serial(Idx[7]):
                T.tile.add(y, y, 1.0)
            T.copy(y, Y[vid * 4, 0])

    return main


@pytest.mark.parametrize("times", [0, 1, 5])
def test_how_often_a_loop_runs_may_be_read(times: int) -> None:
    w = RNG.integers(0, 9, (40, 64)).astype(np.float32)
    got = tile_eg.compile(counted(), out_idx=[-1])(w, np.full(32, times, np.int32))
    assert (got == w[:8] + times).all()


@pytest.mark.slow
def test_the_trips_of_a_loop_are_computed_from_what_is_read() -> None:
    @T.prim_func
    def main(X: T.Tensor((4, 64), "float32"), Ends: T.Tensor((2,), "int32"), C: T.Tensor((4, 64), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_ub((64,), "float32")
            for i in T.serial(T.ceildiv(Ends[1] - Ends[0], 2)):
                T.copy(X[i, :], x)
                T.tile.add(x, x, 1.0)
                T.copy(x, C[i, :])

    x, c = RNG.random((4, 64), np.float32), np.zeros((4, 64), np.float32)
    tile_eg.compile(main)(x, np.array([3, 8], np.int32), c)
    assert (c == np.vstack([x[:3] + 1, np.zeros((1, 64))])).all()


@pytest.mark.slow
def test_a_buffer_is_filled_with_what_is_computed_from_elements() -> None:
    @T.prim_func
    def main(G: T.Tensor((8,), "float32"), N: T.Tensor((1,), "int32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1) as _:
            c = T.alloc_ub((64,), "float32")
            for i in T.serial(N[0]):
                T.tile.fill(c, T.if_then_else(i < 2, G[i], G[0] - G[i]))
                T.copy(c, C[i, :])

    g, c = RNG.random(8, np.float32), np.zeros((8, 64), np.float32)
    tile_eg.compile(main)(g, np.array([5], np.int32), c)
    want = np.array([*g[:2], *(g[0] - g[2:5]), 0, 0, 0])
    assert (c == want[:, None]).all()


def loaded_in_part(columns: int):
    @T.prim_func
    def main(X: T.Tensor((6, 24), "float32"), W: T.Tensor((6, 24), "float32"), C: T.Tensor((6, 8), "float32")):
        with T.Kernel(3, is_npu=True) as (cid, vid):
            x, y = T.alloc_ub((24,), "float32"), T.alloc_ub((8,), "float32")
            if cid * 2 + vid < 5:
                T.copy(X[cid * 2 + vid, :], x)
                T.tile.mul(x, x, 2.0)
                T.copy(x, W[cid * 2 + vid, :])
                T.copy(W[cid * 2 + vid, 8 : 8 + columns], y)
                T.tile.add(y, y, 1.0)
                T.copy(y, C[cid * 2 + vid, :])

    return tile_eg.compile(main)


@pytest.mark.slow
def test_each_vector_core_hands_itself_what_only_it_has_stored() -> None:
    """The branch is another one on each vector core: they could not meet in it, and need not."""
    x, w, c = RNG.random((6, 24), np.float32), np.zeros((6, 24), np.float32), np.zeros((6, 8), np.float32)
    loaded_in_part(4)(x, w, c)
    assert (w[:5] == 2 * x[:5]).all() and (c[:5, :4] == 2 * x[:5, 8:12] + 1).all()


def test_what_a_load_does_not_fill_is_padding() -> None:
    x, w, c = RNG.random((6, 24), np.float32), np.zeros((6, 24), np.float32), np.zeros((6, 8), np.float32)
    loaded_in_part(4)(x, w, c)
    assert (c[:5, 4:] == 1).all() and not c[5].any()


def test_vector_cores_that_read_from_each_other_cannot_meet_in_a_branch() -> None:
    @T.prim_func
    def main(X: T.Tensor((2, 8), "float32"), W: T.Tensor((2, 8), "float32"), N: T.Tensor((1,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((8,), "float32")
            if N[0] > vid:
                T.copy(X[vid, :], x)
                T.copy(x, W[vid, :])
                for _i in T.serial(N[0]):
                    T.copy(W[1 - vid, :], x)
                    T.copy(x, X[vid, :])

    with pytest.raises(TileError, match="cores would have to meet"):
        tile_eg.compile(main)


@tile_eg.jit(out_idx=[-1])
def rows_that_exist(rows: int):
    """Largest numbers of rows, one at a time, as long as there are some."""

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), C: T.Tensor((rows, 1), "float32")):
        with T.Kernel(T.ceildiv(rows, 8)) as cid:
            x = T.alloc_shared((1, 64), "float32")
            m = T.alloc_shared((1, 1), "float32")
            for i in T.serial(8):
                if cid * 8 + i < rows:
                    T.copy(A[cid * 8 + i, 0], x)
                    T.reduce_max(x, m, dim=1)
                    T.copy(m, C[cid * 8 + i, 0])

    return main


@pytest.mark.slow
def test_a_branch_in_a_loop_that_differs_from_block_to_block() -> None:
    a = RNG.uniform(-1, 1, (13, 64)).astype(np.float32)
    assert (rows_that_exist(13)(a) == a.max(1, keepdims=True)).all()


def test_an_element_whose_place_is_read_is_counted_up() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(Places: T.Tensor((64,), "int32"), Counts: T.Tensor((16,), "int32")):
        with T.Kernel(1) as _:
            at = T.alloc_shared((64,), "int32")
            counts = T.alloc_shared((16,), "int32")
            T.copy(Places, at)
            T.clear(counts)
            for i in T.serial(64):
                counts[at[i]] = counts[at[i]] + 1
            T.copy(counts, Counts)

    places = RNG.integers(0, 16, 64).astype(np.int32)
    assert (main(places) == np.bincount(places, minlength=16)).all()


@pytest.mark.slow
def test_what_the_search_has_no_instructions_for_is_done_in_order() -> None:
    @T.prim_func
    def main(X: T.Tensor((2, 64), "float32"), Y: T.Tensor((2, 64), "float32")):
        with T.Kernel(2) as cid:
            x = T.alloc_ub((1, 64), "float32")
            y = T.alloc_ub((1, 64), "float32")
            at = T.alloc_ub((1, 64), "uint32")
            for j in T.serial(32):
                at[0, 2 * j] = 4 * (2 * j + 1)
                at[0, 2 * j + 1] = 4 * (2 * j)
            T.copy(X[cid, :], x[0, :])
            T.tile.gather(y, x, at, 0)
            T.copy(y[0, :], Y[cid, :])

    x = RNG.uniform(-1, 1, (2, 64)).astype(np.float32)
    assert (tile_eg.compile(main, out_idx=[-1])(x) == x.reshape(2, 32, 2)[:, :, ::-1].reshape(2, 64)).all()


@pytest.mark.slow
def test_a_branch_may_join_comparisons_of_elements() -> None:
    @T.prim_func
    def main(L: T.Tensor((16,), "int32"), Y: T.Tensor((16,), "float32")):
        with T.Kernel(1):
            at = T.alloc_ub((16,), "int32")
            y = T.alloc_ub((16,), "float32")
            T.copy(L, at)
            T.tile.fill(y, 0.0)
            for i in T.serial(16):
                if at[i] >= 3 and not at[i] > 9:
                    y[i] = 1.0
            T.copy(y, Y)

    at = np.arange(16, dtype=np.int32)[::-1].copy()
    assert (tile_eg.compile(main, out_idx=[-1])(at) == ((at >= 3) & (at <= 9))).all()


def test_a_variable_that_a_branch_of_some_blocks_changes() -> None:
    @T.prim_func
    def main(Y: T.Tensor((4, 16), "float32")):
        with T.Kernel(4) as cid:
            y = T.alloc_ub((16,), "float32")
            n = T.alloc_var("int32", init=1)
            if cid % 2 == 0:
                for _i in T.serial(3):
                    n = n * 2
            T.tile.fill(y, 1.0 * n)
            T.copy(y, Y[cid, :])

    assert (tile_eg.compile(main, out_idx=[-1])()[:, 0] == [8, 1, 8, 1]).all()
