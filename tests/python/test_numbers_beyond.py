"""What the scalar unit reads of a tile in a kernel that is done in order: a statement that takes what a tensor's end cuts off is
not done."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

N = 20
X = np.random.default_rng(0).uniform(-2, -1, N).astype(np.float32)
B = np.random.default_rng(1).integers(0, 7, N).astype(np.int32)


def greatest(how: str):
    @tile_eg.jit(out_idx=[-1])
    def made():
        @T.prim_func
        def main(X: T.Tensor((N,), "float32"), H: T.Tensor((8,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                x, m = T.alloc_ub((16,), "float32"), T.alloc_ub((8,), "float32")
                T.tile.fill(m, -100.0)
                best = T.alloc_var("float32", init=-100.0)
                T.printf("")
                for b in T.serial(2):
                    T.copy(X[b * 16], x)
                    for i in T.serial(16):
                        if how == "stored":
                            m[0] = T.max(m[0], x[i])
                        elif how == "named":
                            t = x[i] * 1.0
                            m[0] = T.max(m[0], t)
                        elif how == "compared":
                            if x[i] > m[0]:
                                m[0] = x[i]
                        else:
                            best = T.max(best, x[i])
                if how == "kept":
                    m[0] = best
                T.copy(m, H)

        return main

    return made()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stored", "named", "compared", "kept"])
def test_the_greatest_of_a_tile_is_one_that_there_is(how):
    np.testing.assert_array_equal(greatest(how)(X), [X.max(), *[-100] * 7])


def counts(how: str):
    @tile_eg.jit(out_idx=[-1])
    def made():
        @T.prim_func
        def main(B: T.Tensor((N,), "int32"), H: T.Tensor((8,), "int32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                x, h = T.alloc_ub((16,), "int32"), T.alloc_ub((8,), "int32")
                T.tile.fill(h, 0)
                for b in T.serial(2):
                    T.copy(B[b * 16], x)
                    for i in T.serial(16):
                        if how == "index":
                            h[x[i] + 1] += 1
                        else:
                            k = x[i]
                            n = k + 1
                            h[n] += 1
                T.copy(h, H)

        return main

    return made()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["index", "two names"])
def test_a_histogram_counts_what_there_is(how):
    np.testing.assert_array_equal(counts(how)(B), np.bincount(B + 1, minlength=8))


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("of", ["a row", "an element", "a word's row"])
def test_a_loop_over_columns_leaves_out_what_lies_beyond(of):
    @tile_eg.jit(out_idx=[-1])
    def made():
        @T.prim_func
        def main(X: T.Tensor((N, 8), "float32"), Y: T.Tensor((8,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                x, y = T.alloc_ub((16, 8), "float32"), T.alloc_ub((8,), "float32")
                T.tile.fill(y, -100.0)
                T.printf("")
                for b in T.serial(2):
                    T.copy(X[b * 16, 0], x)
                    for i in T.serial(16):
                        if of == "a word's row":
                            T.tile.max(y, y, x[i, :])
                        else:
                            for j in T.Parallel(8):
                                y[j] = T.max(y[j], x[i, j] if of == "a row" else x[i, 0] - j)
                T.copy(y, Y)

        return main

    x = np.random.default_rng(2).uniform(-2, -1, (N, 8)).astype(np.float32)
    wanted = x.max(0) if "row" in of else x[:, 0].max() - np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(made()(x), wanted)


def shown(how: str):
    @tile_eg.jit(out_idx=[-1])
    def made():
        @T.prim_func
        def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((32,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                x, y = T.alloc_ub((16,), "float32"), T.alloc_ub((32,), "float32")
                T.tile.fill(y, -100.0)
                T.printf("")
                for b in T.serial(2):
                    T.copy(X[b * 16], x)
                    for i in T.serial(15):
                        v = T.alloc_var("float32", init=x[15 - i])
                        if how == "another":
                            v = x[14 - i]
                        elif how == "in a branch":  # noqa: SIM102
                            if i % 2 == 0:
                                v = 2.0
                        y[b * 16 + i] = v
                T.copy(y, Y)

        return main

    return made()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["once", "another", "in a branch"])
def test_a_variable_is_known_once_it_was_given_what_there_is(how):
    wanted = np.full(32, -100, np.float32)
    for b, i in np.ndindex(2, 15):
        at = b * 16 + 15 - i
        given = [X[n] for n in ([at, at - 1] if how == "another" else [at]) if n < N]
        given += [2.0] if how == "in a branch" and i % 2 == 0 else []
        wanted[b * 16 + i] = given[-1] if given else -100
    np.testing.assert_array_equal(shown(how)(X), wanted)


@pytest.mark.slow
def test_a_row_filled_with_a_number_that_a_tensor_does_not_have_is_not_there() -> None:
    @tile_eg.jit
    @T.prim_func
    def main(F: T.Tensor((5,), "float32"), Y: T.Tensor((7, 16), "float32")):
        with T.Kernel(2) as bx:
            y = T.alloc_shared((16,), "float32")
            for i in T.serial(4):
                T.tile.fill(y, F[bx * 4 + i])
                T.copy(y, Y[bx * 4 + i, 0])

    y = np.full((7, 16), 9, np.float32)
    main(X[:5], y)
    np.testing.assert_array_equal(y, np.array([*X[:5], 9, 9], np.float32)[:, None].repeat(16, 1))
