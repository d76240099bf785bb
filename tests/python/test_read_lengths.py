"""Lengths that are read: how often loops run, where windows end, and where rows of indices end."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg import TileError
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.printer import print_kernel
from tile_eg.ir import arithmetic
from tile_eg.ir.kernel import For
from tile_eg.search.compiler import Lowered, lower, meaning

SEGMENTS = """
kernel segments[B=4, S=100, L=64, N=48, BM=32](X: f32[S, N], starts: i32[B + 1]) -> (Y: f32[S, N], Z: f32[B, N]) {{
  grid b = B
  shared x: f32[BM, N]
  fragment z: f32[N] = 0
  let first = starts[b]
  let end = starts[b + 1]
  for j in pipelined(ceildiv(min(end - first, L), BM)) {{
    x = X[first + j*BM : min(end, first + j*BM + BM), :]
    z = z + colsum(x)
    {store}
  }}
  Z[b, 0] = z
}}
"""
SLICE = "Y[first + j*BM : min(end, first + j*BM + BM), :] = x * 2"
GUARD = "parallel (i, c) in (BM, N) { if j*BM + i < end - first { Y[first + j*BM + i, c] = x[i, c] * 2 } }"
STARTS = np.array([0, 33, 33, 97, 98], np.int32)  # a tile and a row, nothing, two tiles, one row


@tile_eg.jit(out_idx=[-2, -1])
def segments(B, S, L, N, BM=32):
    @T.prim_func
    def segments(
        X: T.Tensor((S, N), "float32"), starts: T.Tensor((B + 1,), "int32"), Y: T.Tensor((S, N), "float32"),
        Z: T.Tensor((B, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(B) as b:
            x = T.alloc_shared((BM, N), "float32")
            z = T.alloc_fragment((N,), "float32")
            T.clear(z)
            first = starts[b]
            end = starts[b + 1]
            for j in T.Pipelined(T.ceildiv(T.min(end - first, L), BM)):
                T.copy(X[first + j * BM : T.min(end, first + j * BM + BM), :], x)
                z[:] = z + T.reduce_sum(x, dim=0)
                T.copy(x * 2, Y[first + j * BM : T.min(end, first + j * BM + BM), :])
            T.copy(z, Z[b, 0])

    return segments


@cache
def compiled(store: str) -> Lowered:
    return lower(load_text(SEGMENTS.format(store=store)).instantiate(), "910B2")


@pytest.mark.slow
@pytest.mark.parametrize("store", [SLICE, GUARD], ids=["slice", "guard"])
def test_each_block_does_the_rows_between_two_numbers_that_it_reads(store: str):
    x = np.random.default_rng(0).standard_normal((100, 48), np.float32)
    got = compiled(store).run({"X": x, "starts": STARTS}).outputs
    np.testing.assert_array_equal(got["Y"][:98], 2 * x[:98])
    sums = [x[a:b].sum(0) for a, b in zip(STARTS[:-1], STARTS[1:], strict=True)]
    np.testing.assert_allclose(got["Z"], sums, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_what_lies_behind_the_last_window_is_not_written():
    got = compiled(SLICE).run({"X": np.ones((100, 48), np.float32), "starts": STARTS}).outputs
    assert (got["Y"][98:] != 2).all()


def test_a_slice_that_ends_where_is_read_is_one_kernel_in_both_languages():
    kernel = load_text(SEGMENTS.format(store=SLICE)).instantiate()
    assert segments(4, 100, 64, 48).kernel == kernel


@pytest.mark.parametrize("guard", ["first + j*BM + i < end", "i < end - first - j*BM", "end > i + first + j*BM"])
def test_a_guard_of_numbers_that_are_read_and_positions_may_be_written_in_any_order(guard: str) -> None:
    other = GUARD.replace("j*BM + i < end - first", guard)
    assert load_text(SEGMENTS.format(store=other)).instantiate() == load_text(SEGMENTS.format(store=GUARD)).instantiate()


@pytest.mark.parametrize("store", [SLICE, GUARD], ids=["slice", "guard"])
def test_windows_that_end_where_is_read_are_printed_as_they_are_read(store: str):
    kernel = load_text(SEGMENTS.format(store=store)).instantiate()
    assert load_text(print_kernel(kernel)).instantiate() == kernel


@pytest.mark.slow
def test_a_loop_that_runs_as_often_as_is_read_is_timed_at_the_most_trips():
    text = SEGMENTS.format(store=SLICE)
    longer = lower(load_text(text).instantiate({"S": 10000, "L": 8192}), "910B2").timeline.cycles
    assert longer > 20 * compiled(SLICE).timeline.cycles


def test_a_loop_whose_trips_are_read_needs_a_bound():
    text = SEGMENTS.format(store=SLICE).replace("min(end - first, L)", "end - first")
    with pytest.raises(TileError, match="nothing says how often this loop runs at the most") as told:
        load_text(text).instantiate()
    assert "min(length, S)" in str(told.value)


ALONE = """
kernel alone[B=4, S=100, N=48](X: f32[S, 2, N], starts: i32[B + 1]) -> Z: f32[B, N] {
  grid b = B
  fragment z: f32[N]
  z = colsum(X[starts[b] : min(starts[b + 1], starts[b] + 64), 1, :])
  Z[b, 0] = z
}
"""


@pytest.mark.slow
def test_a_slice_up_to_a_minimum_with_a_number_needs_no_other_side():
    x, starts = np.random.default_rng(0).standard_normal((100, 2, 48), np.float32), np.array([0, 33, 34, 97, 100], np.int32)
    sums = [x[a:b, 1].sum(0) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    found = lower(load_text(ALONE).instantiate(), "910B2").run({"X": x, "starts": starts}).outputs["Z"]
    np.testing.assert_allclose(found, sums, rtol=1e-4, atol=1e-5)


TILES = """
kernel tiles[B=4, S=100, N=48, BM=32](X: f32[S, N], starts: i32[B + 1]) -> Y: f32[S, N] {
  grid (t, b) = (4, B)
  shared x: f32[BM, N]
  x = X[starts[b] + t*BM : min(starts[b + 1], starts[b] + t*BM + BM), :]
  parallel (i, c) in (BM, N) { if starts[b] + t*BM + i < starts[b + 1] { Y[starts[b] + t*BM + i, c] = x[i, c] * 2 } }
}
"""


@pytest.mark.slow
def test_an_empty_window_may_begin_beyond_its_tensor():
    x = np.random.default_rng(0).standard_normal((100, 48), np.float32)
    kernel, given = load_text(TILES).instantiate(), {"X": x, "starts": np.array([0, 33, 33, 97, 100], np.int32)}
    for found in (meaning(kernel, given), lower(kernel, "910B2").run(given).outputs):
        np.testing.assert_array_equal(found["Y"], 2 * x)


ROWS = """
kernel rows[B=2, V=30, K=20, D=32, BK=16](W: f32[V, D], at: i32[B, K]) -> Y: f32[B, D] {
  grid b = B
  shared w: f32[BK, D]
  fragment y: f32[D] = 0
  for j in serial(ceildiv(K, BK)) {
    parallel (i, d) in (BK, D) { w[i, d] = W[at[b, j*BK + i], d] }
    y = y + colsum(w)
  }
  Y[b, 0] = y
}
"""


@pytest.mark.slow
def test_indices_of_one_row_end_with_it():
    rng = np.random.default_rng(0)
    w, at = rng.standard_normal((30, 32), np.float32), rng.integers(0, 30, (2, 20)).astype(np.int32)
    lowered = lower(load_text(ROWS).instantiate(), "910B2")
    np.testing.assert_allclose(lowered.run({"W": w, "at": at}).outputs["Y"], w[at].sum(1), rtol=1e-4, atol=1e-5)


@tile_eg.jit(out_idx=[-1])
def masked(B, N):
    @T.prim_func
    def masked(X: T.Tensor((B, N), "float32"), lengths: T.Tensor((B,), "int32"), Y: T.Tensor((B, N), "float32")):
        with T.Kernel(B) as b:
            x = T.alloc_shared((N,), "float32")
            T.copy(X[b, 0], x)
            for i in T.Parallel(N):
                x[i] = T.if_then_else(i < lengths[b], x[i], 0)
            T.copy(x, Y[b, 0])

    return masked


@pytest.mark.slow
def test_a_position_is_compared_with_a_number_that_is_read_as_an_index():
    x, lengths = np.ones((3, 40), np.float32), np.array([0, 17, 40], np.int32)
    np.testing.assert_array_equal(masked(3, 40)(x, lengths), np.arange(40) < lengths[:, None])


@pytest.mark.parametrize(("name", "neutral"), [("max", -np.inf), ("min", np.inf), ("sum", 0)])
def test_a_reduction_of_no_elements_is_what_takes_no_part(name: str, neutral: float):
    np.testing.assert_array_equal(arithmetic.reduce(name, np.zeros((3, 0), np.float32), 1), np.full(3, neutral))


@pytest.mark.slow
def test_one_more_trip_than_is_read() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((16, 64), "float32"), last: T.Tensor((1,), "int32"), Y: T.Tensor((1, 64), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((1, 64), "float32")
            s = T.alloc_shared((1, 64), "float32")
            T.clear(s)
            for i in T.serial(last[0] + 1):
                T.copy(X[i, 0], x)
                T.tile.add(s, s, x)
            T.copy(s, Y)

    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    assert (main(x, np.array([4], np.int32)) == x[:5].sum(0)).all()


@cache
def rows_of_sequences():
    @T.prim_func
    def main(X: T.Tensor((100, 32), "float32"), starts: T.Tensor((4,), "int32"), Y: T.Tensor((100, 32), "float32")):
        with T.Kernel(3 * 4) as cid:
            first = starts[cid // 4]
            n = starts[cid // 4 + 1] - first
            at = cid % 4 * 16
            x = T.alloc_shared((16, 32), "float32")
            if at < n:
                rows = T.min(16, n - at)
                T.copy(X[first + at : first + at + rows, :], x)
                x[:, :] = x * 2.0
                T.copy(x, Y[first + at : first + at + rows, :])

    return tile_eg.compile(main, out_idx=[-1])


def test_a_branch_around_a_tile_that_may_not_be_there_is_a_loop_of_one_trip() -> None:
    assert [s.extent for s in rows_of_sequences().kernel.body if isinstance(s, For)] == [1]


@pytest.mark.slow
def test_only_tiles_that_are_there_are_done() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (100, 32)).astype(np.float32)
    assert (rows_of_sequences()(x, np.array([0, 33, 36, 100], np.int32)) == x * 2).all()
