"""Sorts, gathers, merges, padding and parts of tiles in searched kernels, in both languages."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.reference_bounds import run_with_bounds
from tile_eg.jit import CompiledKernel, TileKernel

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@functools.cache
def largest(n: int, k: int, dtype: str = "float32") -> CompiledKernel:
    @T.prim_func
    def main(X: T.Tensor((4, n), dtype), V: T.Tensor((4, k), dtype), P: T.Tensor((4, k), "int32")):
        with T.Kernel(4) as cid:
            x, pairs = T.alloc_shared((n,), dtype), T.alloc_shared((2 * k,), dtype)
            v, f, i = T.alloc_shared((k,), dtype), T.alloc_shared((k,), dtype), T.alloc_shared((k,), "int32")
            T.copy(X[cid, :], x)
            T.tile.topk(pairs, x, k, n)
            T.tile.gather_mask(v, pairs, "P0101")
            T.tile.gather_mask(f, pairs, "P1010")
            T.tile.cast(i, f, "CAST_ROUND", k)
            T.copy(v, V[cid, :])
            T.copy(i, P[cid, :])

    return tile_eg.compile(main, out_idx=[1, 2])


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "k", "dtype"), [(32, 32, "float32"), (100, 24, "float32"), (1000, 1000, "float32"), (256, 16, "float16")]
)
def test_the_largest_elements_and_their_indices(n: int, k: int, dtype: str) -> None:
    x = floats(4, n).astype(dtype)
    values, indices = largest(n, k, dtype)(x)
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]
    assert (indices == order).all() and (values == np.take_along_axis(x, order, 1)).all()


@pytest.mark.slow
def test_sorted_lists_are_merged() -> None:
    @T.prim_func
    def main(A: T.Tensor((3, 64), "float32"), C: T.Tensor((384,), "float32")):
        with T.Kernel(1) as _:
            x, y, z = T.alloc_shared((64,), "float32"), T.alloc_shared((64,), "float32"), T.alloc_shared((64,), "float32")
            a, b, c = T.alloc_shared((128,), "float32"), T.alloc_shared((128,), "float32"), T.alloc_shared((128,), "float32")
            out = T.alloc_shared((384,), "float32")
            for n, row, pairs in [(0, x, a), (1, y, b), (2, z, c)]:
                T.copy(A[n, :], row)
                T.tile.sort(pairs, row, 64)
            T.tile.merge_sort(out, a, b, c)
            T.copy(out, C)

    a = floats(3, 64)
    got = tile_eg.compile(main, out_idx=[-1])(a)
    assert (got[0::2] == -np.sort(-a.ravel())).all()


def gathered(lines: Callable[..., None], out: int, dtype: str = "float32") -> np.ndarray:
    @T.prim_func
    def main(X: T.Tensor((8, 32), dtype), A: T.Tensor((out, 32), "uint32"), C: T.Tensor((out, 32), dtype)):
        with T.Kernel(1) as _:
            x, o, c = T.alloc_shared((8, 32), dtype), T.alloc_shared((out, 32), "uint32"), T.alloc_shared((out, 32), dtype)
            T.copy(X, x)
            T.copy(A, o)
            lines(x, o, c)
            T.copy(c, C)

    offsets = (PLACES[:out] * np.dtype(dtype).itemsize).astype(np.uint32)
    return tile_eg.compile(main, out_idx=[-1])(ELEMENTS.astype(dtype), offsets)


ELEMENTS, PLACES = floats(8, 32), RNG.integers(0, 256, (8, 32))


@T.macro
def by_offsets(x, o, c):
    T.tile.gather(c, x, o, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("out", "dtype"), [(8, "float32"), (4, "float32"), (8, "float16")])
def test_elements_are_gathered_by_offsets_in_bytes(out: int, dtype: str) -> None:
    assert (gathered(by_offsets, out, dtype) == ELEMENTS.astype(dtype).ravel()[PLACES[:out]]).all()


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(("rows", "cols"), [(30, 50), (32, 64), (8, 64), (32, 8)])
def test_padding_stands_beyond_the_end_of_a_tensor(rows: int, cols: int) -> None:
    @T.prim_func
    def main(X: T.Tensor((rows, cols), "float32"), P: T.Tensor((32, 64), "float32"), M: T.Tensor((32,), "float32")):
        with T.Kernel(1) as _:
            x, m = T.alloc_shared((32, 64), "float32"), T.alloc_shared((32,), "float32")
            T.copy(X[0:32, 0:64], x, pad_value=-1.0)
            T.reduce_max(x, m, dim=1)
            T.copy(x, P)
            T.copy(m, M)

    x = floats(rows, cols) - 5
    padded = np.full((32, 64), -1, np.float32)
    padded[:rows, :cols] = x
    got, most = tile_eg.compile(main, out_idx=[1, 2])(x)
    assert (got == padded).all() and (most == padded.max(1)).all()


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(("first", "count", "to"), [(8, 16, 24), (3, 8, 8), (0, 8, 5), (3, 24, 5), (0, 64, 0)])
def test_a_part_of_what_was_computed_replaces_a_part(first: int, count: int, to: int) -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1) as _:
            x, y = T.alloc_shared((8, 64), "float32"), T.alloc_shared((8, 64), "float32")
            m = T.alloc_shared((8,), "float32")
            T.copy(X, x)
            T.reduce_max(x, m, dim=1)
            T.tile.broadcast(y, m, 1)
            T.tile.sub(y, x, y)
            T.copy(y[2:5, first : first + count], x[3:6, to : to + count])
            T.copy(x, C)

    x = floats(8, 64)
    wanted = x.copy()
    wanted[3:6, to : to + count] = (x - x.max(1, keepdims=True))[2:5, first : first + count]
    assert (tile_eg.compile(main, out_idx=[-1])(x) == wanted).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [16, 12])
def test_a_loop_writes_run_by_run_and_every_second_element(n: int) -> None:
    @T.prim_func
    def main(X: T.Tensor((4 * n,), "float32"), C: T.Tensor((4 * n,), "float32")):
        with T.Kernel(1) as _:
            x, c = T.alloc_shared((n,), "float32"), T.alloc_shared((4 * n,), "float32")
            for b in T.serial(4):
                T.copy(X[b * n], x)
                for i in range(n):
                    c[b * n + i] = x[i] * 2.0
            for i in range(n):
                c[2 * i + 1] = 5.0
            T.copy(c, C)

    x = floats(4 * n)
    wanted = 2 * x
    wanted[1 : 2 * n : 2] = 5
    assert (tile_eg.compile(main, out_idx=[-1])(x) == wanted).all()


@pytest.mark.slow
def test_half_a_tile_may_lie_beyond_the_end() -> None:
    @T.prim_func
    def main(X: T.Tensor((34, 64), "float32"), C: T.Tensor((34, 64), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            x = T.alloc_ub((16, 64), "float32")
            T.copy(X[cid * 32 + vid * 16, 0], x)
            T.tile.add(x, x, 1.0)
            T.copy(x, C[cid * 32 + vid * 16, 0])

    x = floats(34, 64)
    assert (tile_eg.compile(main, out_idx=[-1])(x) == x + 1).all()


TEXT = """
kernel firsts[N=96, K=16](X: f32[N]) -> (C: f32[K], D: f32[192]) {
  grid bx = 1
  shared x: f32[N], p: f32[2 * K], c: f32[K], s: f32[192]
  x = X[0]
  p = topk(x, K)
  c = every(p, 0, 2)
  s = sort(x)
  C[0] = c
  D[0] = s
}
"""


@pytest.mark.slow
def test_the_words_of_tile_text() -> None:
    x = floats(96)
    first, all_of_it = TileKernel(load_text(TEXT))(x)
    order = np.argsort(-x, kind="stable")
    assert (first == x[order[:16]]).all() and (all_of_it == np.stack([x[order], order], 1).ravel()).all()


def refusal(lines: Callable[..., None]) -> str:
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1) as _:
            x, c = T.alloc_shared((64,), "float32"), T.alloc_shared((64,), "float32")
            T.copy(X, x)
            lines(x, c)
            T.copy(c, C)

    with pytest.raises(TileError) as caught:
        tile_eg.compile(main, out_idx=[-1])(floats(64))
    return caught.value.message


@T.macro
def too_short(x, c):
    T.tile.sort(c, x, 64)


@T.macro
def no_pattern(x, c):
    T.tile.gather_mask(c, x, "P11")


@T.macro
def too_many(x, c):
    T.tile.topk(c, x, 32, 65)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (too_short, "the result has 128 elements, and c 64"),
        (no_pattern, "there is no pattern 'P11' here"),
        (too_many, "65 of 64 elements cannot be sorted"),
    ],
    ids=["short", "pattern", "many"],
)
def test_what_does_not_fit_is_refused(lines, message: str) -> None:
    assert refusal(lines) == message


MOVED = """
kernel moved[N=64](X: f32[N]) -> C: f32[32] {
  grid bx = 1
  shared x: f32[N], c: f32[32]
  x = X[0]
  x = exp(x)
  c = every(x, 1, 2)
  C[0] = c
}
"""


def test_what_was_rounded_keeps_its_bounds_where_it_is_moved() -> None:
    x = floats(64)
    found = run_with_bounds(load_text(MOVED).instantiate(), {"X": x})["C"]
    assert (found.allowed > 0).all() and (np.abs(found.value - np.exp(x)[1::2]) <= found.allowed).all()


def test_an_order_by_what_was_rounded_has_no_bounds() -> None:
    text = TEXT.replace("x = X[0]", "x = X[0]  x = exp(x)")
    found = run_with_bounds(load_text(text).instantiate(), {"X": floats(96)})
    assert np.isinf(found["C"].allowed).all() and np.isinf(found["D"].allowed).all()


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(("axis", "reverse"), [(0, False), (1, False), (1, True), (0, True)])
def test_running_sums(axis: int, reverse: bool) -> None:
    @T.prim_func
    def main(X: T.Tensor((6, 40), "float32"), C: T.Tensor((6, 40), "float32")):
        with T.Kernel(1) as _:
            x, c = T.alloc_shared((6, 40), "float32"), T.alloc_shared((6, 40), "float32")
            T.copy(X, x)
            T.cumsum(x, c, axis, reverse)
            T.copy(c, C)

    x = floats(6, 40)
    turned = np.flip(x, axis) if reverse else x
    wanted = turned.cumsum(axis)
    np.testing.assert_allclose(
        tile_eg.compile(main, out_idx=[-1])(x), np.flip(wanted, axis) if reverse else wanted, rtol=1e-5, atol=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "cols", "dtype"), [(16, 16, "float16"), (8, 40, "float32"), (64, 24, "float32")])
def test_a_transposed_tile(rows: int, cols: int, dtype: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((rows, cols), dtype), C: T.Tensor((cols, rows), dtype)):
        with T.Kernel(1) as _:
            x, c = T.alloc_shared((rows, cols), dtype), T.alloc_shared((cols, rows), dtype)
            T.copy(X, x)
            T.tile.transpose(c, x)
            T.copy(c, C)

    x = floats(rows, cols).astype(dtype)
    assert (tile_eg.compile(main, out_idx=[-1])(x) == x.T).all()
