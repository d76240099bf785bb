"""An index that lies in the tensor, but not in its own dimension, is told: behind the end of a row lies the next one."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.inputs import drawn_sets
from tile_eg.ir.reference import run_kernel
from tile_eg.ir.reference_indices import check_indices, most_of_indices
from tile_eg.search.compiler import lower

HEAD = "kernel f[R=4](I: i32[4, 16], J: i32[4], X: f32[64, 32]) -> C: f32[4, 32] { grid b = R shared x: f32[1, 32] "


def kernel(body: str):  # noqa: ANN201
    return load_text(HEAD + body + " C[b, 0] = x }").instantiate()


@pytest.mark.parametrize(
    ("index", "told"),
    [
        ("I[0, 20]", "20, dimension 1 has 16 elements"),
        ("I[1, -1]", "-1, dimension 1 has 16 elements"),
        ("I[b, b + 14]", "an index takes the value 17, dimension 1 has 16 elements"),
        ("I[b, b - 1]", "an index takes the value -1, dimension 1 has 16 elements"),
    ],
)
def test_a_known_index_is_refused(index: str, told: str) -> None:
    with pytest.raises(TileError) as error:
        lower(kernel(f"x = X[{index}, 0]"))
    assert error.value.message == f"an index is read outside of `I`: {told}"
    assert error.value.span is not None


def test_one_that_a_branch_leaves_out_is_none() -> None:
    lower(kernel("for k in serial(3) { if k == 0 { x = X[I[b, k*10 + 14], 0] } }"))
    lower(kernel("x = 0 if b > 9 { x = X[I[0, 20], 0] }"))


def test_one_that_is_read_is_told_with_its_value() -> None:
    found = kernel("x = X[I[b, J[b]], 0]")
    arrays = {"I": np.zeros((4, 16), np.int32), "J": np.array([3, 17, 0, 0], np.int32), "X": np.zeros((64, 32), np.float32)}
    with pytest.raises(TileError, match=r"an index of `I` that is read is 17: dimension 1 has 16 elements"):
        check_indices(found, arrays)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("n = I[0, 0] x = X[n[b, J[b]], 0]", "n"),
        ("y = X[0, 0] parallel (i, j) in (1, 32) { x[i, j] = X[0, j] + y[0, J[b]] }", "y"),
        ("x = 0 for k in serial(min(I[b, J[b]], 3)) { x = x + X[k, 0] }", "I"),
    ],
)
def test_so_is_one_into_a_buffer_and_of_a_number_of_trips(body: str, name: str) -> None:
    found = kernel("shared n: i32[4, 16], y: f32[1, 16] " + body)
    arrays = {"I": np.zeros((4, 16), np.int32), "J": np.array([3, 17, 0, 0], np.int32), "X": np.zeros((64, 32), np.float32)}
    with pytest.raises(TileError, match=rf"an index of `{name}` that is read is 17: dimension 1 has 16 elements"):
        check_indices(found, arrays)


def test_what_is_drawn_lies_inside() -> None:
    assert most_of_indices(kernel("x = X[I[b, J[b]], 0]")) == {"I": 63, "J": 15}


@pytest.mark.slow
def test_rows_behind_the_end_of_a_row_of_a_table_are_not_there() -> None:
    text = "kernel f(I: i32[4, 16], X: f32[64, 32]) -> C: f32[4, 20, 32] { grid (b, h) = (4, 3) shared x: f32[8, 32] "
    found = load_text(text + "parallel (r, j) in (8, 32) { x[r, j] = X[I[b, h*8 + r], j] } C[b, h*8, 0] = x }").instantiate()
    drawn = drawn_sets(found, ["uniform"], 0)[0]
    meant = run_kernel(found, drawn.arrays)["C"]
    assert np.array_equal(meant[:, :16], drawn.arrays["X"][drawn.arrays["I"]])
    assert np.isnan(meant[:, 16:]).all()
    got = lower(found).run(drawn.arrays, strict=False)
    assert np.array_equal(got["C"][:, :16], meant[:, :16])
    assert got.unwritten["C"][:, 16:].all()


def kept(at):  # noqa: ANN001, ANN201
    @tile_eg.jit(out_idx=[-1])
    def made():  # noqa: ANN202
        @T.prim_func
        def f(n: T.Tensor((4, 16), "int32"), X: T.Tensor((4, 4, 32), "float32"), C: T.Tensor((4, 32), "float32")):
            with T.Kernel(4, is_npu=True) as (b, vid):
                x = T.alloc_ub((1, 32), "float32")
                with T.Scope("V"):
                    T.copy(at(X, n, b), x)
                    T.barrier_all()
                    T.copy(x, C[b, 0])

        return f

    return made()


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (lambda X, n, b: X[0, 6, 0:32], "a window of `X` lies outside: 6, dimension 1 has 4 elements"),
        (lambda X, n, b: X[1, -1, 0:32], "a window of `X` lies outside: -1, dimension 1 has 4 elements"),
        (lambda X, n, b: X[0, n[0, 20], 0:32], "of `n` lies outside: 20, dimension 1 has 16 elements"),
    ],
)
def test_a_kept_kernel_does_not_begin_outside(at, told: str) -> None:  # noqa: ANN001
    with pytest.raises(TileError) as error:
        kept(at).get_kernel_source()
    assert told in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [5, 50])
def test_one_index_may_go_with_the_rows_and_another_be_read_at_them(rows: int) -> None:
    def picked(n: T.Tensor((rows, 7), "int32"), m: T.Tensor((rows,), "int32"), W: T.Tensor((9, 45), "float32")):  # noqa: ANN202
        return W[n[T.arange(rows), m]]

    rng = np.random.default_rng(0)
    n, m = rng.integers(0, 9, (rows, 7)).astype(np.int32), rng.integers(0, 7, rows).astype(np.int32)
    w = rng.uniform(-1, 1, (9, 45)).astype(np.float32)
    np.testing.assert_array_equal(tile_eg.jit(effort="none")(picked)(n, m, w), w[n[np.arange(rows), m]])


@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_rows_beyond_the_last_in_a_loop_of_no_trips_are_none() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def copied(X: T.Tensor((64, 32), "float32"), Y: T.Tensor((64, 32), "float32")):
        with T.Kernel(3) as (cid, vid):
            x = T.alloc_ub((32, 32), "float32")
            with T.Scope("V"):
                left = T.if_then_else(cid * 32 < 64, 64 - cid * 32, 0)
                with T.If(left >= 32):
                    with T.Then():
                        T.copy(X[cid * 32, 0], x)
                        T.barrier_all()
                        T.copy(x, Y[cid * 32, 0])
                    with T.Else():
                        for r in T.serial(left):
                            T.copy(X[cid * 32 + r, 0], x[r, :])
                            T.barrier_all()
                            T.copy(x[r, :], Y[cid * 32 + r, :])

    x = np.random.default_rng(0).uniform(-1, 1, (64, 32)).astype(np.float32)
    assert (copied(x) == x).all()
