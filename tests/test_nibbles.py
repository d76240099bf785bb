"""Numbers of 4 bits: loaded by bytes, computed in f16, and what is refused."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import Lowered, lower

SCALED = """
kernel scaled[M=40, N=70, K=320, BM=32, BN=32, BK=128](A: f16[M, K], W: i4[N, K], S: f16[N]) -> C: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared   a: f16[BM, BK], w: i4[BN, BK], x: f16[BN, BK], s: f16[BN]
  fragment c: f32[BM, BN] = 0
  s = S[by*BN]
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    w = W[by*BN, k*BK]
    x = w * s[:, None]
    c += a @ x.T
  }
  C[bx*BM, by*BN] = c
}
"""
COPIED = """
kernel copied[M=30, K=192](W: i4[M, K]) -> (C: f32[M, K], D: i4[M, K], E: i4[M, K]) {
  grid bx = 2
  shared w: i4[15, K], z: i4[15, K] = -3, x: f32[15, K]
  w = W[bx*15, 0]
  parallel (i, j) in (15, K) { x[i, j] = w[i, j] * 2 + 1 }
  C[bx*15, 0] = x
  D[bx*15, 0] = w
  E[bx*15, 0] = z
}
"""
VECTOR = """
kernel v[N=100](W: i4[N]) -> C: f32[N] {
  grid bx = 1
  shared w: i4[N]
  w = W[0]
  C[0] = f32(w)
}
"""


@lru_cache
def compiled(source: str, chip: str = "910B2") -> Lowered:
    return lower(load_text(source).instantiate(), chip)


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).integers(-8, 8, shape)


def packed(x: np.ndarray) -> np.ndarray:
    return ((x[..., ::2] & 15) | (x[..., 1::2] & 15) << 4).astype(np.uint8).view(np.int8)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_a_product_with_weights_of_4_bits_ends_where_its_tensors_do(chip: str) -> None:
    random, w = np.random.default_rng(6), drawn(70, 320)
    a, s = random.uniform(-1, 1, (40, 320)).astype(np.float16), random.uniform(0.5, 1, 70).astype(np.float16)
    run = compiled(SCALED, chip).run({"A": a, "W": packed(w), "S": s})
    want = a.astype(np.float64) @ (w.astype(np.float16) * s[:, None]).astype(np.float64).T
    assert not run.findings and np.abs(run.outputs["C"] - want).max() < 1e-3


@pytest.mark.slow
def test_they_are_copied_filled_and_stored_by_bytes() -> None:
    w = drawn(30, 192)
    out = compiled(COPIED).run({"W": packed(w)}).outputs
    assert (out["C"] == w * 2 + 1).all() and (out["D"] == packed(w)).all() and (out["E"] == packed(np.full((30, 192), -3))).all()


@pytest.mark.slow
def test_a_vector_of_any_even_length() -> None:
    assert (compiled(VECTOR).run({"W": packed(drawn(100))}).outputs["C"] == drawn(100)).all()


def summed(dtype: str = "int4", columns: int = 128):
    @tile_eg.jit(out_idx=[-1])
    def build(M, N):
        @T.prim_func
        def main(W: T.Tensor((M, N), dtype), C: T.Tensor((M,), "float32")):
            with T.Kernel(T.ceildiv(M, 16)) as b:
                w = T.alloc_shared((16, columns), dtype)
                x = T.alloc_shared((16, columns), "float16")
                y = T.alloc_fragment((16, columns), "float32")
                c = T.alloc_fragment((16,), "float32")
                T.copy(W[b * 16, 0], w)
                T.tile.cast(x, w, "CAST_NONE", 16 * columns)
                for i, j in T.Parallel(16, columns):
                    y[i, j] = x[i, j] + 1
                T.reduce_sum(y, c, dim=1)
                T.copy(c, C[b * 16])

        return main

    return build


@pytest.mark.slow
def test_in_python_and_from_an_array_of_ml_dtypes() -> None:
    w = drawn(20, 128)
    for array in (packed(w), w.astype(ml_dtypes.int4)):
        assert (summed()(20, 128)(array) == (w + 1).sum(1)).all()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (COPIED.replace("W[bx*15, 0]", "W[bx*15, 1]"), "begins or ends inside of a byte"),
        (COPIED.replace("K=192", "K=160"), "a block of 32 bytes holds 64"),
        (COPIED.replace("= -3", "= 9"), "9 is no i4"),
        (COPIED.replace("D[bx*15, 0] = w", "D[bx*15, 0] = i4(x)"), "no value is rounded to yet"),
        (VECTOR.replace("N=100", "N=99"), "two share a byte"),
        ("kernel t[M=8, N=64](W: i4[M, N]) -> C: f32[M, N] { C = W * 2 }", "not there in expressions of whole tensors"),
    ],
)
def test_what_does_not_lie_in_whole_bytes_is_refused(source: str, said: str) -> None:
    with pytest.raises(TileError, match=said) as caught:
        lower(load_text(source).instantiate())
    assert caught.value.span is not None and caught.value.help


@pytest.mark.slow
def test_sizes_follow_from_arrays_of_bytes(tmp_path: Path) -> None:
    file = tmp_path / "vector.tile"
    file.write_text(VECTOR)
    values = drawn(64)
    packed = ((values[::2] & 15) | (values[1::2] << 4)).astype(np.int8)
    np.testing.assert_array_equal(tile_eg.load(file)(packed), values)


def test_a_kept_kernel_has_none() -> None:
    @tile_eg.jit(out_idx=[-1])
    def build(N):
        @T.prim_func
        def main(W: T.Tensor((N,), "int4"), C: T.Tensor((N,), "float16")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                w = T.alloc_ub((N,), "int4")
                T.copy(W, w)
                T.barrier_all()
                T.copy(w, C)

        return main

    with pytest.raises(TileError, match="not there in a kernel that is kept"):
        build(64)


def test_unsigned_ones_are_refused_by_name() -> None:
    with pytest.raises(TileError, match="have a sign here"):
        summed("uint4")(20, 128)
