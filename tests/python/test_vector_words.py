"""AscendNPU-IR's vector words, the destination last, in kernels with scopes."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")


def kernel(target: str | None):
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32"), C: T.Tensor((16, 64), "float16")):
        with T.Kernel(2, is_npu=True) as (cid, _):  # noqa: SIM117
            with T.Scope("Vector"):
                a = T.alloc_ub((8, 64), "float32")
                b = T.alloc_ub((8, 64), "float32")
                c = T.alloc_ub((8, 64), "float32")
                r = T.alloc_ub((8, 1), "float32")
                m = T.alloc_ub((8, 8), "uint8")
                h = T.alloc_ub((8, 64), "float16")
                T.copy(A[cid * 8, 0], a, [8, 64])
                T.copy(B[cid * 8, 0], b, [8, 64])
                T.vadd(a, b, c)
                T.vexp(c, c)
                T.vcmp(c, 1.5, m, "gt")
                T.vselect(m, c, b, c)
                T.reduce_max(c, r, dim=1)
                T.vbrc(r, a)
                T.vsub(c, a, c)
                T.vmul(c, 2.0, c)
                T.vcast(c, h, round_mode="rint")
                T.copy(h, C[cid * 8, 0], [8, 64])

    return tile_eg.compile(main, out_idx=[2], target=target)


A, B = (np.random.default_rng(n).uniform(-1, 1, (16, 64)).astype(np.float32) for n in range(2))


@pytest.mark.slow
def test_their_compiler_orders_the_instructions_of_a_core() -> None:
    c = np.exp(A + B)
    c = np.where(c > 1.5, c, B)
    assert np.allclose(kernel("npuir")(A, B), (c - c.max(1, keepdims=True)) * 2, atol=4e-3)


@pytest.mark.slow
def test_elsewhere_the_author_does() -> None:
    with pytest.raises(tile_eg.TileError, match="race"):
        kernel(None)(A, B)


def test_a_cast_takes_as_much_as_its_size_says() -> None:
    """Numbers, a start point, and what only the kernel knows; a reshape of a buffer into itself leaves it."""

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), N: T.Tensor((1,), "int32"), C: T.Tensor((16, 64), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):  # noqa: F841, SIM117
            with T.Scope("Vector"):
                a = T.alloc_ub((16, 64), "float32")
                c = T.alloc_ub((16, 64), "float16")
                T.copy(A, a)
                T.vbrc(0, c)
                T.reshape(a, a)
                T.vcast(a, c, round_mode="rint", size=[8, 64])
                T.vcast(a[8, 0], c[8, 0], round_mode="rint", size=[4, 32])
                T.vcast(a[12, 0], c[12, 0], round_mode="rint", size=[T.min(N[0], 4), 32])
                T.copy(c, C)

    want = np.zeros((16, 64), np.float16)
    want[:8], want[8:14, :32] = A[:8], A[8:14, :32]
    made = tile_eg.compile(main, out_idx=[2], target="npuir")
    np.testing.assert_array_equal(made(A, np.array([2], np.int32)), want)
