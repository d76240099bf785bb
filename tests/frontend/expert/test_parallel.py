"""T.Parallel in kernels that are kept: element by element what the loop says, and a reason where it cannot be done."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.ir.program import Instr, Loop, PipeBarrier, SetFlag, walk
from tile_eg.jit import CompiledKernel

SYNC = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
RNG = np.random.default_rng(0)
R, C = 16, 64
X, Y = (RNG.uniform(0.5, 2, (R, C)).astype(np.float32) for _ in range(2))
ROW, COL = RNG.uniform(0.5, 2, C).astype(np.float32), RNG.uniform(0.5, 2, R).astype(np.float32)


def elementwise(
    body: Any, rows: int = R, cols: int = C, dtype: str = "float", out: str = "", auto: bool = True
) -> CompiledKernel:
    """Z[i, j] = body(x, y, row, col, i, j) with x, y, row, col in UB, of one type, the loop over all of Z."""

    @tile_eg.jit(out_idx=[-1], pass_configs=SYNC if auto else {})
    def kernel() -> Any:
        @T.prim_func
        def loop(X: T.Tensor((rows, cols), dtype), Y: T.Tensor((rows, cols), dtype), V: T.Tensor((cols,), dtype),
                 W: T.Tensor((rows,), dtype), Z: T.Tensor((rows, cols), out or dtype)):  # fmt: skip
            with T.Kernel(1, is_npu=True) as _:
                x = T.alloc_ub((rows, cols), dtype)
                y = T.alloc_ub((rows, cols), dtype)
                v = T.alloc_ub((cols,), dtype)
                w = T.alloc_ub((rows,), dtype)
                z = T.alloc_ub((rows, cols), out or dtype)
                with T.Scope("V"):
                    T.copy(X[0, 0], x)
                    T.copy(Y[0, 0], y)
                    T.copy(V[0], v)
                    T.copy(W[0], w)
                    T.barrier_all()
                    for i, j in T.Parallel(rows, cols):
                        z[i, j] = body(x, y, v, w, i, j)
                    T.barrier_all()
                    T.copy(z, Z[0, 0])

        return loop

    return kernel()


I, J = np.arange(R)[:, None], np.arange(C)[None, :]  # noqa: E741
BODIES = {
    "row and column": (lambda x, y, v, w, i, j: x[i, j] * w[i] - v[j], lambda: X * COL[:, None] - ROW),
    "operands turned": (lambda x, y, v, w, i, j: v[j] - x[i, j] / w[i], lambda: ROW - X / COL[:, None]),
    "row beside column": (lambda x, y, v, w, i, j: v[j] - w[i], lambda: ROW - COL[:, None]),
    "numbers": (lambda x, y, v, w, i, j: 2.0 - x[i, j] / 3.0 + 1.0 / y[i, j], lambda: 2 - X / 3 + 1 / Y),
    "one element": (lambda x, y, v, w, i, j: x[i, j] * v[3] + (w[1] - w[2]), lambda: X * ROW[3] + (COL[1] - COL[2])),
    "functions": (
        lambda x, y, v, w, i, j: T.max(T.exp(x[i, j]), T.sigmoid(y[i, j])) + T.tanh(v[j]) * T.sqrt(w[i]),
        lambda: np.maximum(np.exp(X), 1 / (1 + np.exp(-Y))) + np.tanh(ROW) * np.sqrt(COL)[:, None],
    ),
    "a choice by elements": (
        lambda x, y, v, w, i, j: T.if_then_else(x[i, j] > v[j], w[i], 0.0), lambda: np.where(X > ROW, COL[:, None], 0),
    ),
    "a choice by place": (
        lambda x, y, v, w, i, j: T.if_then_else(j <= 2 * i, x[i, j], -y[i, j]), lambda: np.where(J <= 2 * I, X, -Y),
    ),
    "a choice by an odd place": (
        lambda x, y, v, w, i, j: T.if_then_else(j % 3 == 1, x[i, j], 0.0), lambda: np.where(J % 3 == 1, X, 0),
    ),
    "the place as a number": (lambda x, y, v, w, i, j: x[i, j] + (i * 64 + j), lambda: X + (I * 64 + J)),
    "across rows": (lambda x, y, v, w, i, j: x[R - 1 - i, j] + y[i, C - 1 - j], lambda: X[::-1] + Y[:, ::-1]),
    "a neighbour where there is one": (
        lambda x, y, v, w, i, j: T.if_then_else(j + 1 < C, x[i, j + 1], 0.0), lambda: np.pad(X[:, 1:], ((0, 0), (0, 1))),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.few(6)
@pytest.mark.parametrize("name", BODIES)
def test_an_element_loop_is_what_it_says(name: str) -> None:
    body, meant = BODIES[name]
    np.testing.assert_allclose(elementwise(body)(X, Y, ROW, COL), meant(), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("shape", [(16, 4), (3, 20), (5, 1), (1, 24), (9, 128)])
def test_rows_of_any_length(shape: tuple[int, int]) -> None:
    x, y = (RNG.uniform(0.5, 2, shape).astype(np.float32) for _ in range(2))
    v, w = RNG.uniform(0.5, 2, shape[1]).astype(np.float32), RNG.uniform(0.5, 2, shape[0]).astype(np.float32)
    kernel = elementwise(lambda x, y, v, w, i, j: x[i, j] * w[i] - y[i, j] / v[j], *shape)
    np.testing.assert_allclose(kernel(x, y, v, w), x * w[:, None] - y / v, rtol=1e-5)


@pytest.mark.slow
def test_elements_are_cast_as_a_store_casts() -> None:
    x = np.arange(R * C, dtype=np.float16).reshape(R, C)
    with pytest.raises(TileError, match="holds i32"):
        elementwise(lambda x, y, v, w, i, j: T.cast(x[i, j], "float") * 0.5, dtype="float16", out="int32")
    kernel = elementwise(lambda x, y, v, w, i, j: T.cast(x[i, j], "float") * 0.5 + w[i], dtype="float16", out="float")
    np.testing.assert_allclose(kernel(x, x, x[0], x[:, 0]), x.astype(np.float32) * 0.5 + x[:, :1], rtol=1e-6)


@pytest.mark.slow
def test_whole_numbers_stay_whole() -> None:
    x = RNG.integers(-1000, 1000, (R, C)).astype(np.int32)
    kernel = elementwise(lambda x, y, v, w, i, j: (x[i, j] + v[j]) * 3 - T.max(w[i], 0) + (y[i, j] << 2), dtype="int32")
    np.testing.assert_array_equal(kernel(x, x, x[0], x[:, 0]), (x + x[0]) * 3 - np.maximum(x[:, :1], 0) + (x << 2))


def test_a_flag_orders_it_as_any_vector_word() -> None:
    """Nothing stands between the author's barriers but vector instructions and what orders these."""
    kernel = elementwise(BODIES["row and column"][0], auto=False)
    nodes = list(walk(kernel.compile().program.vector))
    assert not any(isinstance(n, SetFlag) for n in nodes)
    assert [n.pipe for n in nodes if isinstance(n, PipeBarrier)] == ["ALL", "V", "V", "ALL"]


def test_the_target_holds_what_is_on_the_way() -> None:
    kernel = elementwise(lambda x, y, v, w, i, j: (x[i, j] + y[i, j]) * x[i, j] - 1.0)
    assert {b.name for b in kernel.compile().program.buffers} == {"x", "y", "v", "w", "z"}


@functools.cache
def parts() -> CompiledKernel:
    """Slots, a part of the columns, several statements, a branch, tensors read and written in place."""

    @tile_eg.jit(out_idx=[-2, -1])
    def kernel() -> Any:
        @T.prim_func
        def parts(X: T.Tensor((40, C), "float"), Y: T.Tensor((40, C), "float"), Z: T.Tensor((40, C), "float")):
            with T.Kernel(2, is_npu=True) as (cid, vid):
                x = T.alloc_ub((2, R, C), "float")
                t = T.alloc_ub((R, C), "float")
                start = cid * 32 + vid * R
                with T.Scope("V"):
                    for side in T.serial(2):
                        for i, j in T.Parallel(R, C):
                            x[side, i, j] = X[start + i, j]
                    T.barrier_all()
                    for i, j in T.Parallel(R, C // 2):
                        x[0, i, j] = x[1, i, j + C // 2] * 2.0
                        t[i, j] = x[0, i, j] + 1.0
                        t[i, j + C // 2] = 0.0
                    for i, j in T.Parallel(R, C):
                        if t[i, j] > 1.0:
                            t[i, j] = t[i, j] * 10.0
                        else:
                            t[i, j] = -1.0
                    T.barrier_all()
                    for i, j in T.Parallel(R, C):
                        Y[start + i, j] = t[i, j]
                        Z[start + i, j] = x[0, i, j] + X[start + i, j]

        return parts

    return kernel()


@pytest.mark.slow
def test_parts_slots_branches_and_tensors() -> None:
    x = RNG.uniform(-1, 1, (40, C)).astype(np.float32)
    y, z = parts()(x)
    left = x[:, C // 2 :] * 2
    t = np.concatenate((left + 1, np.zeros_like(left)), axis=1)
    np.testing.assert_allclose(y, np.where(t > 1, t * 10, -1), rtol=1e-6)
    np.testing.assert_allclose(z, np.concatenate((left, x[:, C // 2 :]), axis=1) + x, rtol=1e-6)


@pytest.mark.slow
def test_what_lies_beyond_a_tensor_is_not_stored() -> None:
    x = RNG.uniform(-1, 1, (40, C)).astype(np.float32)
    assert parts()(x)[0].shape == (40, C)


@pytest.mark.slow
def test_rows_beyond_a_tensor_in_a_loop_need_no_flag_of_the_authors() -> None:
    """The padding of a load is ordered with what follows, trip by trip: a flag holds one bit."""
    x = RNG.uniform(-1, 1, (40, C)).astype(np.float32)

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        @T.prim_func
        def tails(X: T.Tensor((40, C), "float"), Z: T.Tensor((40, C), "float")):
            with T.Kernel(1, is_npu=True) as _:
                x = T.alloc_ub((R, C), "float")
                with T.Scope("V"):
                    for k in T.serial(3):
                        T.copy(X[k * R, 0], x)
                        T.barrier_all()
                        for i, j in T.Parallel(R, C):
                            x[i, j] = x[i, j] * 2.0
                        T.barrier_all()
                        T.copy(x, Z[k * R, 0])
                        T.barrier_all()

        return tails

    np.testing.assert_array_equal(kernel()(x), x * 2)


def product(loop: Any, depth: int, auto: bool = True) -> CompiledKernel:
    """Z = A @ B of 32 x 32, whose operands lie in L1 in tiles 64 deep; `loop(a, b, A, B)` loads them."""

    @tile_eg.jit(out_idx=[-1], pass_configs=SYNC if auto else {})
    def kernel(depth: int) -> Any:
        @T.prim_func
        def both(A: T.Tensor((32, depth), "float16"), B: T.Tensor((depth, 32), "float16"), Z: T.Tensor((32, 32), "float16")):
            with T.Kernel(1, is_npu=True) as _:
                a = T.alloc_L1((32, 64), "float16")
                b = T.alloc_L1((64, 32), "float16")
                c = T.alloc_L0C((32, 32), "float")
                with T.Scope("C"):
                    loop(a, b, A, B)
                    T.barrier_all()
                    T.gemm_v0(a, b, c, init=True)
                    for i, j in T.Parallel(32, 32):
                        Z[i, j] = c[i, j]

        return both

    return kernel(depth)


def _beyond(a: Any, b: Any, A: Any, B: Any) -> None:  # noqa: N803
    for i, j in T.Parallel(64, 64):
        a[i, j] = A[i, j]
        b[i, j] = B[i, j]


def _short(a: Any, b: Any, A: Any, B: Any) -> None:  # noqa: N803
    for i in T.Parallel(32):
        a[i, 0] = A[i, 0]
    for j in T.Parallel(32):
        b[0, j] = B[0, j]


@pytest.mark.slow
@pytest.mark.parametrize(("loop", "depth"), [(_beyond, 64), (_short, 1)])
def test_loads_of_l1_in_a_loop(loop: Any, depth: int) -> None:
    """What lies beyond a buffer is left out, and said; what lies beyond a tensor is 0."""
    a, b = RNG.uniform(-1, 1, (32, depth)).astype(np.float16), RNG.uniform(-1, 1, (depth, 32)).astype(np.float16)
    kernel = product(loop, depth)
    np.testing.assert_allclose(kernel(a, b), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-2, atol=1e-2)
    assert any("beyond the end of a:" in n.text for n in kernel.kernel.notes) == (depth == 64)


@pytest.mark.slow
def test_l0c_becomes_zero() -> None:
    @tile_eg.jit(out_idx=[-1], pass_configs=SYNC)
    def kernel() -> Any:
        @T.prim_func
        def zeros(Z: T.Tensor((32, 48), "float")):
            with T.Kernel(1, is_npu=True) as _:
                c = T.alloc_L0C((32, 48), "float")
                with T.Scope("C"):
                    for i, j in T.Parallel(32, 48):
                        c[i, j] = 0
                    T.copy(c, Z)

        return zeros

    np.testing.assert_array_equal(kernel()(), np.zeros((32, 48), np.float32))


@pytest.mark.slow
def test_a_loop_over_three_dimensions() -> None:
    @tile_eg.jit(out_idx=[-1], pass_configs=SYNC)
    def kernel() -> Any:
        @T.prim_func
        def planes(X: T.Tensor((3, 8, 16), "float"), Z: T.Tensor((3, 8, 16), "float")):
            with T.Kernel(1, is_npu=True) as _:
                x = T.alloc_ub((3, 8, 16), "float")
                z = T.alloc_ub((3, 8, 16), "float")
                with T.Scope("V"):
                    for p, i, j in T.Parallel(3, 8, 16):
                        x[p, i, j] = X[p, i, j]
                    for p, i, j in T.Parallel(3, 8, 16):
                        z[p, i, j] = x[2 - p, i, j] + p
                    T.copy(z, Z)

        return planes

    x = RNG.uniform(-1, 1, (3, 8, 16)).astype(np.float32)
    np.testing.assert_allclose(kernel()(x), x[::-1] + np.arange(3)[:, None, None], rtol=1e-6)


def test_single_elements_are_told() -> None:
    kernel = elementwise(BODIES["across rows"][0])
    assert any("the scalar unit copies single elements" in note.text for note in kernel.kernel.notes)


def test_rows_apart_are_done_one_by_one() -> None:
    """x[15 - i, :] is a row of neighbours for each i: no element is copied alone."""
    nodes = list(walk(elementwise(lambda x, y, v, w, i, j: x[R - 1 - i, j] * 2.0).compile().program.vector))
    loops = [n for n in nodes if isinstance(n, Loop)]
    assert [n.trips for n in loops] == [R]
    assert not any(isinstance(n, Instr) and n.op == "store_element" for n in nodes)


def refused(body: Any) -> str:
    with pytest.raises(TileError) as caught:
        elementwise(body).compile()
    assert caught.value.span is not None
    return caught.value.message


def test_beyond_a_buffer() -> None:
    assert refused(lambda x, y, v, w, i, j: x[i, j + 1]) == "j + 1 goes from 1 to 64, and x has 64 elements there"


def in_place(statement: Any) -> TileError:
    """A loop over x and m with one statement."""

    @tile_eg.jit(out_idx=[-1], pass_configs=SYNC)
    def kernel() -> Any:
        @T.prim_func
        def loop(X: T.Tensor((R, C), "float"), Z: T.Tensor((R, C), "float")):
            with T.Kernel(1, is_npu=True) as _:
                x = T.alloc_ub((R, C), "float")
                m = T.alloc_ub((R,), "float")
                with T.Scope("V"):
                    T.copy(X, x)
                    for i, j in T.Parallel(R, C):
                        statement(x, m, i, j)
                    T.copy(x, Z)

        return loop

    with pytest.raises(TileError) as caught:
        kernel()
    return caught.value


def _shifted(x: Any, m: Any, i: Any, j: Any) -> None:
    x[i, j] = x[0, j] + 1.0


def _summed(x: Any, m: Any, i: Any, j: Any) -> None:
    m[i] = m[i] + x[i, j]


def test_iterations_that_depend_on_one_another() -> None:
    error = in_place(_shifted)
    assert "iterations of T.Parallel would depend on one another" in error.message


def test_a_sum_over_iterations() -> None:
    error = in_place(_summed)
    assert error.message == "every iteration of `j` writes the same element of m"
    assert "T.reduce_sum" in error.help


@pytest.mark.slow
def test_rows_and_elements_that_an_index_picks() -> None:
    @tile_eg.jit(out_idx=[-2, -1])
    def kernel() -> Any:
        @T.prim_func
        def gathered(X: T.Tensor((R, C), "float"), N: T.Tensor((R,), "int32"), V: T.Tensor((R,), "float"),
                     Z: T.Tensor((R, C), "float"), U: T.Tensor((R,), "float")):  # fmt: skip
            with T.Kernel(1, is_npu=True) as _:
                x = T.alloc_ub((R, C), "float")
                n = T.alloc_ub((R,), "int32")
                v = T.alloc_ub((R,), "float")
                u = T.alloc_ub((R,), "float")
                z = T.alloc_ub((R, C), "float")
                T.copy(X, x)
                T.copy(N, n)
                T.copy(V, v)
                T.barrier_all()
                factor = v[3]
                for i, j in T.Parallel(R, C):
                    z[i, j] = x[n[i], j] * factor + v[i]
                for i in T.Parallel(R):
                    u[i] = v[n[i]] + 1.0
                T.barrier_all()
                T.copy(z, Z)
                T.copy(u, U)

        return gathered

    n = RNG.permutation(R).astype(np.int32)
    z, u = kernel()(X, n, COL)
    np.testing.assert_allclose(z, X[n] * COL[3] + COL[:, None], rtol=1e-6)
    np.testing.assert_allclose(u, COL[n] + 1, rtol=1e-6)


@pytest.mark.slow
def test_several_lambdas_of_one_line() -> None:
    functions = [lambda x, y, v, w, i, j: x[i, j] + 1.0, lambda x, y, v, w, i, j: x[i, j] * (y[i, j] + 1.0)]
    found = [elementwise(f)(X, Y, ROW, COL) for f in functions]
    for z, meant in zip(found, (X + 1, X * (Y + 1)), strict=True):
        np.testing.assert_allclose(z, meant, rtol=1e-6)


def test_an_array_may_be_given_for_a_result_that_the_call_makes() -> None:
    z = np.full((R, C), 7, np.float32)
    made = elementwise(BODIES["row and column"][0])(X, Y, ROW, COL, z)
    np.testing.assert_allclose(made, X * COL[:, None] - ROW, rtol=1e-5, atol=1e-6)
    assert (z == 7).all()
    with pytest.raises(TileError, match="expected 4 arrays"):
        elementwise(BODIES["row and column"][0])(X, Y, ROW, COL, z, z)
