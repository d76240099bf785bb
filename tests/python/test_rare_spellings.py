"""Spellings that few kernels use, at each level: If and Then, TIR's logic, bits of AscendNPU-IR, masks of tiles, functions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

X, W = np.random.default_rng(0).uniform(-1, 1, (2, 16, 64)).astype(np.float32)


@tile_eg.jit(out_idx=[-1], effort="none")
@T.prim_func
def in_turns(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(1):
        a = T.alloc_ub((16, 64), "float32")
        T.copy(X[0, 0], a)
        for i in T.unroll(3):
            with T.If(i % 2 == 0):
                with T.Then():
                    T.tile.add(a, a, 1.0)
                with T.Else():
                    T.tile.mul(a, a, 2.0)
        T.copy(a, Y[0, 0])


@tile_eg.jit(out_idx=[-1], effort="none")
@T.prim_func
def even_and_odd(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 32), "float32")):
    with T.Kernel(1):
        a = T.alloc_ub((16, 64), "float32")
        b, c = T.alloc_ub((16, 32), "float32"), T.alloc_ub((16, 32), "float32")
        T.copy(X, a)
        T.tile.gather_mask(b, a, "P0101")
        T.tile.gather_mask(c, a, "P1010")
        T.tile.mul_add_dst(b, c, c)
        T.copy(b, Y)


@tile_eg.jit(out_idx=[-1], effort="none")
@T.prim_func
def by_logic(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(2) as b:
        a = T.alloc_fragment((8, 64), "float32")
        T.copy(X[b * 8 : (b + 1) * 8, :], a)
        for i, j in T.Parallel(8, 64):
            chosen = T.Or(T.And(a[i, j] > 0.0, j % 2 == 0), T.Not(b * 8 + i < 12))
            a[i, j] = T.Select(chosen, T.clamp(a[i, j], -0.5, max_val=0.5), T.Max(T.round(a[i, j] * 4.0), T.Min(a[i, j], 0.25)))
        T.copy(a, Y[b * 8 : (b + 1) * 8, :])


@tile_eg.jit(out_idx=[-1], target="npuir", effort="none")
@T.prim_func
def bits(A: T.Tensor((16, 64), "int32"), B: T.Tensor((16, 64), "int32"), C: T.Tensor((16, 64), "int32")):
    with T.Kernel(1, is_npu=True) as (cid, _):
        a, b, c = T.alloc_ub((16, 64), "int32"), T.alloc_ub((16, 64), "int32"), T.alloc_ub((16, 64), "int32")
        T.copy(A, a)
        T.copy(B, b)
        T.vand(a, b, c)
        T.vxor(c, a, c)
        T.vor(c, b, c)
        T.vshr(c, 2, c)
        T.vnot(c, c)
        T.copy(c, C)


@tile_eg.jit(effort="none")
def of_whole_tensors(X: T.Tensor((16, 64), "float32"), W: T.Tensor((16, 64), "float32")):
    c = T.tril(X @ W.T) + T.triu(W @ X.T, 1)
    return T.log_softmax(c, axis=-1), T.var(X, axis=-1), T.erf(X) - T.softplus(X) + T.leaky_relu(X, 0.1) * T.trunc(X * 5)


@pytest.mark.slow
def test_if_and_then_are_an_if() -> None:
    np.testing.assert_array_equal(in_turns(X), (X + 1) * 2 + 1)


@pytest.mark.slow
def test_a_tile_of_every_second_element_has_as_many_rows() -> None:
    np.testing.assert_allclose(even_and_odd(X), X[:, ::2] + X[:, 1::2] ** 2, rtol=1e-6)


@pytest.mark.slow
def test_conditions_by_names() -> None:
    i, j = np.ogrid[:16, :64]
    chosen = ((X > 0) & (j % 2 == 0)) | ~(i < 12)
    wanted = np.where(chosen, np.clip(X, -0.5, 0.5), np.maximum(np.rint(X * 4), np.minimum(X, np.float32(0.25))))
    np.testing.assert_array_equal(by_logic(X), wanted)


@pytest.mark.slow
def test_bits_with_the_destination_last() -> None:
    a, b = np.random.default_rng(1).integers(0, 2**30, (2, 16, 64)).astype(np.int32)
    np.testing.assert_array_equal(bits(a, b), ~((((a & b) ^ a) | b) >> 2))


@pytest.mark.slow
def test_functions_of_whole_tensors() -> None:
    log, var, rest = of_whole_tensors(X, W)
    c = np.tril(X @ W.T) + np.triu(W @ X.T, 1)
    np.testing.assert_allclose(log, c - np.log(np.exp(c).sum(-1, keepdims=True)), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(var, X.var(-1), rtol=1e-5)
    wanted = np.vectorize(math.erf)(X) - np.log1p(np.exp(X)) + np.where(X > 0, X, 0.1 * X) * np.trunc(X * 5)
    np.testing.assert_allclose(rest, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_functions_of_text(tmp_path: Path) -> None:
    (tmp_path / "k.tile").write_text(
        "kernel k(X: f32[16, 64], W: u16[16, 64]) -> (Y: f32[16, 64], Z: u16[16, 64]) {\n  grid b = 1\n"
        "  shared x: f32[16, 64], w: u16[16, 64]\n  x = X[0, 0]\n  w = W[0, 0]\n"
        "  Y[0, 0] = softplus(x) + round_away(x * 3) - colmin(x)[None, :] + f32(u8(w & 255))\n  Z[0, 0] = swap_pairs(w)\n}\n"
    )
    w = np.arange(1024, dtype=np.uint16).reshape(16, 64) * 37
    y, z = tile_eg.load(tmp_path / "k.tile", effort="none")(X, w)
    away = np.sign(X) * np.floor(np.abs(X * 3) + 0.5)
    np.testing.assert_allclose(y, np.log1p(np.exp(X)) + away - X.min(0) + (w & 255), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(z, w.reshape(16, 32, 2)[:, :, ::-1].reshape(16, 64))
