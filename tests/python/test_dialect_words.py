"""Words that AscendNPU-IR's dialect has beside those of the rest of the language."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.python.written import prim_func
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.search.compiler import meaning

random = np.random.default_rng(0)
X, Y = (random.uniform(0.5, 2, (8, 32)).astype(np.float32) for _ in range(2))
I = np.indices((8, 32))  # noqa: E741

TEXT = """
@T.prim_func
def f(X: T.Tensor((8, 32), "{dtype}"), Y: T.Tensor((8, 32), "{dtype}"), Z: T.Tensor({shape}, "{dtype}")):
    with T.Kernel(1, is_npu=True) as (cid, _):
        x = T.alloc_ub((8, 32), "{dtype}")
        y = T.alloc_ub((8, 32), "{dtype}")
        z = T.alloc_ub({shape}, "{dtype}")
        t = T.alloc_ub((8, 32), "{dtype}")
        T.copy(X, x)
        T.copy(Y, y)
        {body}
        T.copy(z, Z)
"""


def compiled(body: str, shape: tuple[int, int] = (8, 32), dtype: str = "float32") -> tile_eg.jit.CompiledKernel:
    function = prim_func(TEXT.format(body=body, shape=shape, dtype=dtype))
    return tile_eg.compile(function, out_idx=[-1], target="npuir", effort="none")


def computed(body: str, shape: tuple[int, int] = (8, 32), x: np.ndarray = X, y: np.ndarray = Y) -> np.ndarray:
    """What the body means, or where it is done in its order what the simulator computes."""
    made = compiled(body, shape, str(x.dtype))
    return meaning(made.kernel, {"X": x, "Y": y})["Z"] if isinstance(made.kernel, Kernel) else made(x, y)


WORDS = {
    "T.npuir_add(x, y, z)": X + Y, "T.npuir_rec(x, z)": 1 / X, "T.vexp2(x, z, t)": 2**X, "T.vlog2(x, z, t)": np.log2(X),
    "T.vclamp(x, z, 0.75, 1.5)": X.clip(0.75, 1.5), "T.vclamp(x, z, 0.75, y)": np.minimum(np.maximum(X, 0.75), Y),
    "T.npuir_add(x, y[0, :], z)": X + Y[0], "T.vadd(x, y[:, 3], z)": X + Y[:, 3:4], "T.vmul(x, y[2, 1], z)": X * Y[2, 1],
    "T.arange(z, [100, 2], 5)": I[0] * 100 + I[1] * 2 + 5,
    "T.concat(x[:, :16], y[:, :16], z, 1)": np.concatenate((X[:, :16], Y[:, :16]), 1),
    "T.concat(x[:3, :], y[:5, :], z, 0)": np.concatenate((X[:3], Y[:5])),
    "T.pad(x[:4, :], z, -1.0, [2, 0], [2, 0])": np.pad(X[:4], ((2, 2), (0, 0)), constant_values=-1),
    "T.interleave(x[:, :16], y[:, :16], z)": np.stack((X[:, :16], Y[:, :16]), 2).reshape(8, 32),
    "T.load_nd2nz(x[0:8, 0:32], z)": X,
}  # fmt: skip


@pytest.mark.few(5)
@pytest.mark.parametrize("body", WORDS)
def test_the_destination_stands_last(body: str) -> None:
    np.testing.assert_allclose(computed(body), WORDS[body], rtol=1e-5)


@pytest.mark.parametrize(("body", "shape", "want"), [
    ("T.transpose(x, z, [1, 0])", (32, 8), X.T), ("T.reshape(x, z)", (16, 16), X.reshape(16, 16)),
    ("T.deinterleave(x, z, index_mode='CHANNEL_1')", (8, 16), X[:, 1::2]),
])  # fmt: skip
def test_of_other_shapes(body: str, shape: tuple[int, int], want: np.ndarray) -> None:
    np.testing.assert_array_equal(computed(body, shape), want)


def test_bits_are_shifted_by_numbers() -> None:
    x = np.arange(256, dtype=np.int32).reshape(8, 32)
    np.testing.assert_array_equal(computed("T.vshl(x, 3, t); T.npuir_shr(t, 1, z)", x=x, y=x), x * 4)


@pytest.mark.slow
@pytest.mark.parametrize("body", [
    "T.vexp2(x, z, t)", "T.vclamp(x, z, 0.75, y)", "T.arange(z, [100, 2], 5)", "T.concat(x[:3, :], y[:5, :], z, 0)",
])  # fmt: skip
def test_in_a_kernel_that_is_kept(body: str) -> None:
    made = compiled(f"T.pipe_barrier('PIPE_V'); {body}")
    assert not isinstance(made.kernel, Kernel)
    np.testing.assert_allclose(made(X, Y), WORDS[body], rtol=1e-5)


WRONG = {
    "T.concat(x, y, z, 1)": "have no room", "T.pad(x, z, 0.0, [1, 0], [0, 0])": "do not become",
    "T.interleave(x, y, z)": "do not fill", "T.transpose(x, z, [0, 0])": "a permutation of 2 axes",
    "T.transpose(x, z, 1)": "a permutation of 2 axes",
    "T.store_fixpipe(x, Z)": "stored in rows", "T.store_fixpipe(x, Z, enable_nz2nd=True, pre_relu_mode='prelu')": "does not take",
    "T.arange(z, [1], 0)": "takes 2 strides", "T.vclamp(x, y, 0.0, y)": "before it has read",
    "T.pad(x, x, 0.0, [0, 0], [0, 0])": "before it has read",
    "T.concat(x, y, y, 1)": "before it has read",
}  # fmt: skip


@pytest.mark.parametrize("body", WRONG)
def test_what_cannot_be_is_told(body: str) -> None:
    with pytest.raises(TileError, match=WRONG[body]):
        compiled(body)


@pytest.mark.slow
def test_flags_of_the_pipe_around() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            a = T.alloc_ub((8, 64), "float32")
            with T.rs("PIPE_MTE2"):
                T.copy(A[cid * 8, 0], a)
                T.set_flag("PIPE_V", 0)
            with T.rs("PIPE_V"):
                T.wait_flag("PIPE_MTE2", 0)
                T.vadd(a, 1.0, a)
                T.set_flag("PIPE_MTE3", 0)
            with T.rs("PIPE_MTE3"):
                T.wait_flag("PIPE_V", 0)
                T.copy(a, B[cid * 8, 0])

    a = np.ones((16, 64), np.float32)
    by_hand = {tile_eg.PassConfigKey.NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC: True}
    np.testing.assert_array_equal(tile_eg.compile(main, out_idx=[-1], target="npuir", pass_configs=by_hand)(a), a + 1)


def test_a_switch_without_flags_of_ones_own_is_refused() -> None:
    function = prim_func(TEXT.format(body="T.vadd(x, y, z)", shape=(8, 32), dtype="float32"))
    with pytest.raises(TileError, match="no flags"):
        tile_eg.compile(function, pass_configs={tile_eg.PassConfigKey.NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC: True})


ADDED = """
@T.prim_func
def f(X: T.Tensor((16, 32), "float32"), Z: T.Tensor((8, 32), "float32")):
    with T.Kernel(2, is_npu=True) as (cid, _):
        x = T.alloc_shared((8, 32), "float32")
        T.copy(X[cid * 8, 0], x)
        T.atomic_add(Z[0, 0], x, [8, 32])
"""


@pytest.mark.parametrize(("target", "times"), [("npuir", 1), ("ascendc", 2)])
def test_how_often_a_block_adds(target: str, times: int) -> None:
    x = np.ones((16, 32), np.float32)
    made = tile_eg.compile(prim_func(ADDED), out_idx=[-1], target=target, effort="none")
    np.testing.assert_array_equal(meaning(made.kernel, {"X": x})["Z"], np.full((8, 32), 2 * times))


def test_several_elements_are_not_added_in_an_element_loop() -> None:
    added = "T.atomic_add(Z[0, 0], x, [8, 32])"
    text = ADDED.replace(added, "for i, j in T.Parallel(8, 8): {}(Z[i, j * 4], x[i, j * 4], [1, 4])")
    for word in ("T.atomic_add", "T.atomic_addx4"):
        with pytest.raises(TileError, match="one element is added at a time"):
            tile_eg.compile(prim_func(text.format(word)), out_idx=[-1])


def test_a_column_is_copied_to_a_column() -> None:
    text = TEXT.replace("T.copy(z, Z)", "T.copy(x[:, 1], Z[0, 2])").format(body="T.copy(y, Z)", shape=(8, 32), dtype="float32")
    found = meaning(tile_eg.compile(prim_func(text), out_idx=[-1], effort="none").kernel, {"X": X, "Y": Y})["Z"]
    np.testing.assert_array_equal(found[:, 2], X[:, 1])
    np.testing.assert_array_equal(found[:, 3:], Y[:, 3:])


def test_a_grid_of_two_dimensions_has_a_vector_core_too() -> None:
    text = ADDED.replace("T.Kernel(2, is_npu=True) as (cid, _)", "T.Kernel(2, 1, is_npu=True) as (cid, other, _)")
    made = tile_eg.compile(prim_func(text), out_idx=[-1], target="npuir", effort="none")
    np.testing.assert_array_equal(meaning(made.kernel, {"X": np.ones((16, 32), np.float32)})["Z"], np.full((8, 32), 2))
