"""Packed numbers, taken apart by a shift that follows from the position: `w[i, j // 2] >> (j % 2 * 4)`."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T  # noqa: N812

N, K = 24, 64


def unpacked(bits, spread):
    """A kernel of numbers of `bits` bits in bytes; `spread(byte, position)` is what its author writes."""
    each = 8 // bits

    @T.prim_func
    def kernel(W: T.Tensor((N, K // each), "uint8"), C: T.Tensor((N, K), "float16")):  # noqa: N803
        with T.Kernel(T.ceildiv(N, 16)) as block:
            w = T.alloc_shared((16, K // each), "uint8")
            c = T.alloc_shared((16, K), "float16")
            T.copy(W[block * 16, 0], w)
            for i, j in T.Parallel(16, K):
                c[i, j] = T.cast(spread(w[i, j // each], j % each), "float16")
            T.copy(c, C[block * 16, 0])

    return tile_eg.compile(kernel, out_idx=[1])


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "spread"), [
    (4, lambda byte, at: (byte >> (at * 4)) & 15),
    (4, lambda byte, at: (byte >> (at.astype("uint8") * 4)) & 15),
    (2, lambda byte, at: (byte >> (2 * at)) & 3),
])  # fmt: skip
def test_each_number_is_shifted_by_its_place(bits, spread):
    bytes_ = np.random.default_rng(0).integers(0, 256, (N, K * bits // 8)).astype(np.uint8)
    shifts = np.arange(K) % (8 // bits) * bits
    want = (np.repeat(bytes_, 8 // bits, axis=1) >> shifts) & (2**bits - 1)
    assert np.array_equal(unpacked(bits, spread)(bytes_), want.astype(np.float16))
