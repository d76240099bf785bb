"""Bytes are computed in 16 bits: they go through a byte on the way only where a value may not fit one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.ssa.whole_ranges import range_of
from tile_eg.frontend.text import load_text
from tile_eg.ir import kernel as kn
from tile_eg.ir.arithmetic import binary, cast
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.values import reachable
from tile_eg.ops.types import I8, I16, U8
from tile_eg.search import search_options
from tile_eg.search.compiler import lower, meaning

UNPACK = """
kernel unpack[N=16, K=64](W: u8[N, K // 2]) -> Y: i8[N, K] {
  grid b = 1
  shared p: u8[N, K // 2], w: i8[N, K]
  p = W[0, 0]
  parallel (i, j) in (N, K // 2) {
    w[i, 2*j] = LOW
    w[i, 2*j + 1] = HIGH
  }
  Y[0, 0] = w
}
"""
WAYS = {
    "shifts": ("i8((i16(p[i, j]) << 12) >> 12)", "i8((i16(p[i, j]) << 8) >> 12)"),
    "bytes": ("i8((p[i, j] & 15) ^ 8) - 8", "i8((p[i, j] >> 4) ^ 8) - 8"),
    "choices": ("i8(p[i, j] & 15)", "i8(max(p[i, j] >> 4, 3))"),
}


def unpack(way: str) -> Kernel:
    low, high = WAYS[way]
    return load_text(UNPACK.replace("LOW", low).replace("HIGH", high), "unpack.tile").instantiate({})


@pytest.mark.parametrize("way", WAYS)
def test_unpacked_numbers_become_bytes_once(way):
    """Each way is loaded as bytes and joined as bytes: what is between is i16."""
    casts = [t for t in reachable(to_values(unpack(way))) if t.op in ("cast", "s_cast")]
    assert not any(t.dtype in (I8, U8) for t in casts)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("way", WAYS)
def test_they_are_the_same_numbers(way):
    k = unpack(way)
    w = np.arange(256, dtype=np.uint8).repeat(2).reshape(16, 32)
    ran = lower(k, search=search_options(effort="none")).run({"W": w})["Y"]
    np.testing.assert_array_equal(ran, meaning(k, {"W": w})["Y"])
    if way != "choices":
        both = np.stack([w & 15, w >> 4], axis=-1).reshape(16, 64).astype(np.int8)
        np.testing.assert_array_equal(ran, np.where(both > 7, both - 16, both))


@pytest.mark.slow
def test_what_may_not_fit_keeps_its_low_bits():
    k = load_text(
        "kernel k[N=32](X: u8[N], Y: u8[N]) -> Z: u8[N] { grid b = 1\n shared x: u8[N], y: u8[N], z: u8[N]\n"
        " x = X[0]\n y = Y[0]\n z = (x + y) >> 1\n Z[0] = z }",
        "k.tile",
    ).instantiate({})
    x = {"X": np.full(32, 200, np.uint8), "Y": np.arange(32, dtype=np.uint8) * 8}
    ran = lower(k, search=search_options(effort="none")).run(x)["Z"]
    np.testing.assert_array_equal(ran, (x["X"] + x["Y"]) >> 1)


LEAF = kn.Region("x", (), ())
WIDE = kn.Cast(I16, LEAF)


def expressions() -> st.SearchStrategy[kn.TileExpr]:
    numbers = st.integers(-40, 300).map(lambda n: kn.Number(float(n)))

    def joined(inner):  # noqa: ANN001, ANN202
        pairs = st.builds(kn.Binary, st.sampled_from(["add", "sub", "mul", "max", "min", "or", "and"]), inner, numbers | inner)
        shifts = st.builds(
            kn.Binary, st.sampled_from(["shl", "shr"]), inner, st.integers(0, 9).map(lambda n: kn.Number(float(n)))
        )
        bytes_ = st.builds(lambda d, x: kn.Cast(I16, kn.Cast(d, x)), st.sampled_from([I8, U8]), inner)
        return pairs | shifts | bytes_

    return st.recursive(st.just(WIDE), joined, max_leaves=5)


def dtype(e: kn.TileExpr):  # noqa: ANN201
    return U8 if e is LEAF or e == LEAF else e.dtype if isinstance(e, kn.Cast) else None if isinstance(e, kn.Number) else I16


def value(e: kn.TileExpr, x: np.ndarray) -> np.ndarray:
    match e:
        case kn.Number():
            return np.asarray(e.value, np.int16)
        case kn.Cast():
            return cast(value(e.x, x), numpy_dtype(e.dtype))
        case kn.Binary():
            return binary(e.op, value(e.x, x), value(e.y, x))
    return x


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=150)
@given(expressions())
def test_the_range_holds_every_value(e):
    low, high = range_of(e, dtype)
    with np.errstate(all="ignore"):
        found = np.asarray(value(e, np.arange(256, dtype=np.uint8)), np.int64)
    assert low <= found.min() and found.max() <= high


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("sizes", [{"K": 80}, {"K": 200}, {"K": 2}, {"N": 5, "K": 130}], ids=str)
def test_rows_that_a_tensor_cuts_off_are_unpacked(sizes):
    text = """
kernel unpack[N=32, K=128](W: u8[N, K // 2]) -> Y: i8[N, K] {
  grid (bx, by) = (ceildiv(N, 16), ceildiv(K, 128))
  shared p: u8[16, 64], w: i8[16, 128]
  p = W[bx*16, by*64]
  parallel (i, j) in (16, 64) {
    w[i, 2*j] = i8((i16(p[i, j]) << 12) >> 12)
    w[i, 2*j + 1] = i8((i16(p[i, j]) << 8) >> 12)
  }
  Y[bx*16, by*128] = w
}
"""
    k = load_text(text, "unpack.tile").instantiate(sizes)
    w = np.random.default_rng(0).integers(0, 256, k.tensors[0].shape, np.uint8)
    ran = lower(k, search=search_options(effort="none")).run({"W": w})["Y"]
    np.testing.assert_array_equal(ran, meaning(k, {"W": w})["Y"])
