"""A kernel in Python may leave sizes to each call: `T.symbolic`, `T.dyn`, numbers as arguments."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tile_eg
import tile_eg.language as T
from tile_eg import TileError
from tile_eg.cli import sources
from tile_eg.frontend.text import load_text
from tile_eg.jit import TileKernel

ROWS = T.symbolic("M")


@tile_eg.jit(out_idx=[-1], effort="none")
def swapped_halves(BM=8):
    M, N = T.symbolic("M"), T.dynamic("N")
    blocks = T.ceildiv(M, BM)

    @T.prim_func
    def swapped_halves(A: T.Tensor((M, 2 * N), "float32"), C: T.Tensor((M, N), "float32")):
        half = N
        with T.Kernel(blocks) as b:
            x = T.alloc_shared((BM, N), "float32")
            y = T.alloc_shared((BM, N), "float32")
            T.copy(A[b * BM, 0], x)
            T.copy(A[b * BM, half], y)
            for i, j in T.Parallel(BM, N):
                x[i, j] = y[i, j] - x[i, j] * 2.0
            T.copy(x, C[b * BM, 0])

    return swapped_halves


@tile_eg.jit(out_idx=[-1], effort="none")
@T.prim_func
def summed(A: T.Tensor((ROWS, T.dyn["N"]), "float32"), C: T.Tensor((ROWS,), "float32")):
    with T.Kernel(ROWS) as b:
        x = T.alloc_shared((1, 16), "float32")
        total = T.alloc_shared((1,), "float32")
        T.clear(total)
        for k in T.serial(T.ceildiv(A.shape[1], 16)):
            T.copy(A[b, k * 16], x)
            T.reduce_sum(x, total, clear=False)
        T.copy(total, C[b])


@tile_eg.jit(effort="none")
@T.prim_func
def scaled(A: T.Tensor((T.dyn, T.dyn), "float32"), C: T.Tensor((T.dyn, T.dyn), "float32"), rows: T.int32, by: T.float32):
    with T.Kernel(T.ceildiv(rows, 4)) as b:
        x = T.alloc_shared((4, A.shape[1]), "float32")
        T.copy(A[b * 4, 0], x)
        for i, j in T.Parallel(4, A.shape[1]):
            x[i, j] = x[i, j] * by
        T.copy(x, C[b * 4, 0])


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


SIZE = st.sampled_from([0, 1, 2, 7, 13, 16, 31, 40])
SETTINGS = settings(deadline=None, derandomize=True, max_examples=6)


@pytest.mark.slow
@SETTINGS
@given(SIZE, SIZE)
def test_one_kernel_takes_arrays_of_any_shape(m: int, n: int) -> None:
    a = numbers(m, 2 * n)
    if m and not n:
        return
    np.testing.assert_allclose(swapped_halves()(a), a[:, n:] - 2 * a[:, :n], rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@SETTINGS
@given(SIZE, SIZE)
def test_a_symbol_may_stand_around_the_kernel_and_in_the_ends_of_its_loops(m: int, n: int) -> None:
    np.testing.assert_allclose(summed(numbers(m, n)), numbers(m, n).sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_number_of_a_call_is_a_size_or_a_factor() -> None:
    a, c = numbers(12, 5), np.zeros((12, 5), np.float32)
    scaled(a, c, 8, 1.5)
    np.testing.assert_allclose(c, np.concatenate([a[:8] * 1.5, c[8:]]), rtol=1e-6)


@pytest.mark.parametrize(("rows", "by", "name"), [(2**31, 1.0, "`rows` is i32"), (4, 1e40, "`by` is f32")])
def test_a_number_that_its_type_has_no_room_for_is_refused(rows: int, by: float, name: str) -> None:
    with pytest.raises(TileError, match=f"{name}, which has no room for"):
        scaled(numbers(4, 4), numbers(4, 4), rows, by)


def test_a_dimension_that_is_computed_has_to_fit() -> None:
    with pytest.raises(TileError, match="give N"):
        swapped_halves()(numbers(4, 3))


def test_two_arrays_agree_on_a_size() -> None:
    with pytest.raises(TileError, match="M is 4 in A and 5 in C"):
        tile_eg.jit(effort="none")(swapped_halves.function(8))(numbers(4, 4), numbers(5, 2))


@pytest.mark.slow
def test_the_text_needs_the_sizes_that_decide_what_a_tile_is() -> None:
    kernel = swapped_halves()
    with pytest.raises(TileError, match="give N\nnote: N is none that one text serves: a tile has another shape(.|\n)*N=128"):
        kernel.get_kernel_source()
    assert "int32_t M)" in kernel.get_kernel_source(N=8)
    assert kernel.get_kernel_source(N=8) == kernel.get_kernel_source(M=3, N=8)


@pytest.mark.slow
def test_a_vector_may_come_as_a_column() -> None:
    @T.prim_func
    def negated(A: T.Tensor((ROWS,), "float32"), C: T.Tensor((ROWS,), "float32")):
        with T.Kernel(1) as b:
            x = T.alloc_shared((A.shape[0],), "float32")
            T.copy(A[b], x)
            for i in T.Parallel(A.shape[0]):
                x[i] = 0.0 - x[i]
            T.copy(x, C[b])

    a = numbers(8, 1)
    np.testing.assert_array_equal(tile_eg.jit(out_idx=[1], effort="none")(negated)(a), -a[:, 0])


def test_calls_of_one_size_share_a_kernel() -> None:
    kernel = swapped_halves()
    assert kernel.with_sizes(M=3, N=4) is kernel.with_sizes(N=4, M=3)


def test_a_size_that_no_tensor_has_is_named_at_its_line() -> None:
    other = T.symbolic("other")

    @T.prim_func
    def f(A: T.Tensor((ROWS,), "float32")):
        with T.Kernel(other) as b:
            T.copy(A[b], A[b])

    with pytest.raises(TileError, match="other: the shape of no tensor has this size(.|\n)*T.Kernel\\(other\\)"):
        tile_eg.jit(f).with_sizes(M=4)


@pytest.mark.parametrize("decide", [lambda m: 1 if m == 4 else 2, lambda m: bool(m), lambda m: range(m)])
def test_a_size_has_no_value_where_the_kernel_is_made(decide) -> None:
    with pytest.raises(TileError, match="M: a size known at each call has no value yet"):
        decide(ROWS)


def test_sizes_are_set_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(f"import tile_eg\nimport tile_eg.language as T\n\n{inspect.getsource(swapped_halves.function)}")
    kernel = sources.read(file, {"M": 5, "N": 6, "BM": 4})
    assert [t.shape for t in kernel.tensors] == [(5, 12), (5, 6)]
    with pytest.raises(TileError, match="needs a value for N(.|\n)*--set N=512"):
        sources.read(file, {"M": 5})
    with pytest.raises(TileError, match="no parameter or size called `L`"):
        sources.read(file, {"M": 5, "N": 6, "L": 1})


@pytest.mark.slow
def test_a_size_of_tile_text_is_dyn(tmp_path: Path) -> None:
    file = tmp_path / "twice.tile"
    file.write_text("""kernel twice[M: dyn, N: dyn](A: f32[M, N]) -> C: f32[M, N] {
      grid b = ceildiv(M, 4)
      shared x: f32[4, N]
      x = A[b*4, 0]
      C[b*4, 0] = x + x
    }""")
    kernel = tile_eg.load(file, effort="none")
    for m in (0, 1, 9):
        np.testing.assert_array_equal(kernel(numbers(m, 3)), numbers(m, 3) * 2)


def test_no_other_word_stands_behind_the_colon_of_a_size(tmp_path: Path) -> None:
    file = tmp_path / "f.tile"
    file.write_text("kernel f[M: any](A: f32[M]) -> C: f32[M] { grid b = M  C[b] = A[b] }")
    with pytest.raises(TileError, match="`M: any`: a size is `M=512`, or `M: dyn`"):
        tile_eg.load(file)


def test_a_loop_over_no_rows_in_a_grid_of_its_own_does_nothing() -> None:
    @tile_eg.jit(out_idx=[-1])
    def doubled(cols=40):
        rows = T.symbolic("rows")

        @T.prim_func
        def main(X: T.Tensor((rows, cols), "float32"), Y: T.Tensor((rows, cols), "float32")):
            with T.Kernel(1) as _:
                x = T.alloc_shared((16, cols), "float32")
                for t in T.serial(T.ceildiv(rows, 16)):
                    T.copy(X[t * 16, 0], x)
                    T.copy(x, Y[t * 16, 0])

        return main

    text = """kernel doubled[rows: dyn](X: f32[rows, 40]) -> Y: f32[rows, 40] {
      grid b = 1
      shared x: f32[16, 40]
      for t in serial(ceildiv(rows, 16)) {
        x = X[t*16, 0]
        Y[t*16, 0] = x
      }
    }"""
    for kernel in (doubled(), TileKernel(load_text(text))):
        assert kernel(np.zeros((0, 40), np.float32)).shape == (0, 40)


@pytest.mark.parametrize("word", [T.dynamic, T.symbolic, T.dyn])
def test_several_sizes_of_a_call_are_named_at_once(word: Any) -> None:
    assert [str(s) for s in (*word("M, N"), *word("M N"), word("K"))] == ["M", "N", "M", "N", "K"]
    with pytest.raises(TileError, match="has a name, not '2'"):
        word("M, 2")


@pytest.mark.slow
def test_an_array_may_part_the_dimension_that_counts_rows() -> None:
    @tile_eg.jit
    def doubled():
        n = T.symbolic("n")

        @T.prim_func
        def main(X: T.Tensor((n, 8), "float32"), Y: T.Tensor((n, 8), "float32")):
            with T.Kernel(T.ceildiv(n, 16)) as b:
                x = T.alloc_shared((16, 8), "float32")
                T.copy(X[b * 16, 0], x)
                x[:, :] = x * 2.0
                T.copy(x, Y[b * 16, 0])

        return main

    x, y = np.arange(2 * 20 * 8, dtype=np.float32), np.zeros((2, 20, 8), np.float32)
    doubled()(x.reshape(40, 8), y)
    assert np.array_equal(y.reshape(-1), x * 2)
