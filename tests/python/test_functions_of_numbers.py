"""Functions of numbers that the scalar unit does not have, in kernels that are done in order or kept: `s += T.exp2(x[k] - m)`."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

N = 20
X = np.random.default_rng(0).normal(size=N).astype(np.float32)
B = np.array([1, 2, 3, 25, 4, 21, 0, 19], np.int32)


def combined(chip: str):
    """The parts of a flash decoding joined, with numbers."""
    S, D = 5, 64

    @tile_eg.jit(out_idx=[-1], chip=chip)
    def made():
        @T.prim_func
        def main(G: T.Tensor((S,), "float32"), P: T.Tensor((S, D), "float32"), Y: T.Tensor((D,), "float32")):
            with T.Kernel(1):
                part, acc = T.alloc_fragment([D], "float32"), T.alloc_fragment([D], "float32")
                most, total = T.alloc_var("float32"), T.alloc_var("float32")
                scale = T.alloc_var("float32")
                T.clear(total)
                T.clear(acc)
                most = -T.infinity("float32")
                for k in T.serial(S):
                    most = T.max(most, G[k])
                for k in T.Pipelined(S, num_stages=1):
                    total += T.exp2(G[k] - most)
                total = T.log2(total) + most
                for k in T.serial(S):
                    T.copy(P[k, :], part)
                    scale = T.exp2(G[k] - total)
                    for i in T.Parallel(D):
                        acc[i] += part[i] * scale
                T.copy(acc, Y)

        return main

    return made()


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_a_combine_step_with_numbers(chip):
    parts = np.random.default_rng(1).normal(size=(5, 64)).astype(np.float32)
    weights = np.exp2(X[:5]) / np.exp2(X[:5]).sum()
    with pytest.warns(Warning, match="exp of a number is made by vector instructions"):
        found = combined(chip)(X[:5], parts)
    np.testing.assert_allclose(found, weights @ parts, rtol=1e-5, atol=1e-6)


def of_each(how: str):
    @tile_eg.jit(out_idx=[-1])
    def made():
        @T.prim_func
        def main(X: T.Tensor((N,), "float32"), B: T.Tensor((8,), "int32"), H: T.Tensor((8,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                h = T.alloc_ub((8,), "float32")
                T.printf("")
                T.tile.fill(h, 0.0)
                for k in T.serial(8):
                    if how == "chosen":
                        h[k] = T.if_then_else(B[k] < N, T.exp(X[B[k]]), 7.0)
                    elif how == "two":
                        h[k] = T.pow(T.abs(X[k]), 1.5)
                    elif how == "branch":
                        if T.sigmoid(X[k]) > 0.5:
                            h[k] = 1.0
                    else:
                        h[k] = T.exp(B[k])
                T.copy(h, H)

        return main

    return made()


def test_an_operand_that_a_choice_leaves_out_is_not_read():
    expected = [np.exp(X[b]) if b < N else 7 for b in B]
    np.testing.assert_allclose(of_each("chosen")(X, B), expected, rtol=1e-6)


@pytest.mark.slow
def test_a_function_of_two_numbers():
    np.testing.assert_allclose(of_each("two")(X, B), np.abs(X[:8]) ** 1.5, rtol=1e-5)


def test_a_branch_by_a_function():
    np.testing.assert_array_equal(of_each("branch")(X, B), X[:8] > 0)


def test_a_function_of_a_whole_number_asks_for_a_cast():
    with pytest.raises(TileError, match="exp of a whole number") as told:
        of_each("whole")(X, B)
    assert told.value.help == 'cast it first: T.cast(x, "float32")'


@pytest.mark.slow
def test_what_a_tensors_end_cuts_off_has_no_function():
    @tile_eg.jit(out_idx=[-1])
    def made():
        @T.prim_func
        def main(X: T.Tensor((N,), "float32"), H: T.Tensor((8,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                x, h = T.alloc_ub((16,), "float32"), T.alloc_ub((8,), "float32")
                total = T.alloc_var("float32", init=0.0)
                T.printf("")
                for b in T.serial(2):
                    T.copy(X[b * 16], x)
                    for i in T.serial(16):
                        total += T.exp(x[i])
                T.tile.fill(h, total)
                T.copy(h, H)

        return main

    np.testing.assert_allclose(made()(X), np.full(8, np.exp(X).sum()), rtol=1e-5)


def test_in_a_kernel_that_is_kept_the_scalar_unit_waits_for_the_element():
    @tile_eg.jit(out_idx=[-1])
    def made():
        @T.prim_func
        def main(X: T.Tensor((16,), "float32"), H: T.Tensor((16,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                x = T.alloc_ub((16,), "float32")
                with T.Scope("V"):
                    T.copy(X, x)
                    T.barrier_all()
                    s = T.exp(x[3])
                    T.tile.mul(x, x, s)
                    T.barrier_all()
                    T.copy(x, H)

        return main

    kernel = made()
    before, after = kernel.get_kernel_source().split("AscendC::Exp(", 1)
    assert "HardEvent::V_S" in after.split("GetValue", 1)[0]
    np.testing.assert_allclose(kernel(X[:16]), X[:16] * np.exp(X[3]), rtol=1e-6)


def test_a_product_cannot_go_by_a_function_of_numbers():
    @tile_eg.jit(out_idx=[-1])
    def made():
        @T.prim_func
        def main(X: T.Tensor((8,), "float32"), A: T.Tensor((32, 32), "float16"), H: T.Tensor((32, 32), "float32")):
            with T.Kernel(1):
                a, c = T.alloc_shared((32, 32), "float16"), T.alloc_fragment((32, 32), "float32")
                T.copy(A, a)
                T.clear(c)
                for k in T.serial(8):
                    if T.exp(X[k]) > 1.0:
                        T.gemm(a, a, c)
                T.copy(c, H)

        return main

    with pytest.raises(TileError, match="branch by an element") as told:
        made()
    assert any("the cube core needs a number" in text and "exp_of_number" in text for text, _ in told.value.notes)


def test_quotients_of_elements_are_rounded_down() -> None:
    @T.prim_func
    def main(X: T.Tensor((8,), "int32"), Z: T.Tensor((8,), "int32"), Y: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            y = T.alloc_shared((8,), "int32")
            for i in range(8):
                y[i] = 7
                if Z[i] != 0:
                    y[i] = X[i] // Z[i] * 100 + X[i] % Z[i]
            T.copy(y, Y)

    x, z = np.array([7, -7, 7, -7, 6, 0, 5, 1], np.int32), np.array([3, 3, -3, -3, 2, 5, 0, 9], np.int32)
    with np.errstate(divide="ignore"):
        want = np.where(z == 0, 7, x // z * 100 + x % z)
    assert np.array_equal(tile_eg.compile(main, out_idx=[2])(x, z), want)
