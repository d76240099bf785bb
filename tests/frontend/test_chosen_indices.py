"""An index that a condition on it leaves out is not read."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.inputs import drawn_sets
from tile_eg.ir.kernel import Kernel
from tile_eg.jit import TileKernel
from tile_eg.search.compiler import lower, meaning

TEXT = """kernel k[M=13, N=24, R=8](X: f16[R, N], Q: i32[M]) -> Y: f16[M, N] {{
  grid b = ceildiv(M, 8)
  shared q: i32[8], y: f16[8, N]
  q = Q[b*8]
  parallel (i, j) in (8, N) {{ y[i, j] = {value} }}
  Y[b*8, 0] = y
}}"""
X = np.random.default_rng(2).uniform(-1, 1, (8, 24)).astype(np.float16)
NONE = np.array([0, -1, 7, 3, -1, 5, 2, 1, -1, 6, -1, 4, 0], np.int32)
FAR = np.where(NONE < 0, [100, -7, 8, -1, 9] * 2 + [100, -7, 8], NONE).astype(np.int32)
CASES = [
    ("select(q[i] >= 0, X[q[i], j], 0)", NONE), ("select(q[i] > -1, X[q[i], j], 0)", NONE),
    ("select(q[i] < 0, 0, X[q[i], j])", NONE), ("select(0 <= q[i], X[q[i], j], 0)", NONE),
    ("select(q[i] != -1, X[q[i], j], 0)", NONE), ("select(q[i] == -1, 0, X[q[i], j])", NONE),
    ("select(q[i] >= 0 and q[i] < R, X[q[i], j], 0)", FAR), ("select(q[i] >= 0, select(q[i] <= 7, X[q[i], j], 0), 0)", FAR),
]  # fmt: skip


def kernel(value: str) -> Kernel:
    return load_text(TEXT.format(value=value), "k.tile").instantiate()


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(("value", "at"), CASES)
def test_what_the_condition_leaves_out_is_not_read(value: str, at: np.ndarray) -> None:
    there = ((at >= 0) & (at < 8))[:, None]
    ran = lower(kernel(value)).run({"X": X, "Q": at})
    assert not ran.findings
    np.testing.assert_array_equal(ran.outputs["Y"], np.where(there, X[np.clip(at, 0, 7)], np.float16(0)))


@pytest.mark.parametrize(
    ("value", "at"),
    [("select(q[i] >= 0, X[q[i], j], 0)", 9), ("select(q[i] < R, X[q[i], j], 0)", -3), ("select(q[i] != -1, X[q[i], j], 0)", -2)],
)
def test_an_index_that_the_condition_lets_through_has_to_be_there(value: str, at: int) -> None:
    with pytest.raises(TileError, match=f"an index of `X` that is read is {at}: dimension 0 has 8 elements"):
        meaning(kernel(value), {"X": X, "Q": np.where(NONE < 0, at, NONE).astype(np.int32)})


@pytest.mark.slow
@pytest.mark.parametrize("index", ["max(q[i], 0)", "q[i] + p[i]"])
def test_a_kernel_of_any_size_takes_indices_that_are_computed(index: str) -> None:
    text = f"""kernel k[M: dyn, N=24, R=8](X: f16[R, N], Q: i32[M], P: i32[M]) -> Y: f16[M, N] {{
      grid b = ceildiv(M, 8)
      shared q: i32[8], p: i32[8], y: f16[8, N]
      q = Q[b*8]
      p = P[b*8]
      parallel (i, j) in (8, N) {{ y[i, j] = X[{index}, j] }}
      Y[b*8, 0] = y
    }}"""
    at = np.where(NONE < 0, 0, NONE)
    q = NONE if "max" in index else np.arange(0, 130, 10, dtype=np.int32)
    got = TileKernel(load_text(text, "k.tile"))(X, q, (at - q).astype(np.int32))
    np.testing.assert_array_equal(got, X[at])


MASKED = """kernel k[M=13, N=24, R=8](X: f16[R, N], Q: i32[M], V: i32[M], W: i32[M]) -> Y: f16[M, N] {{
  grid b = ceildiv(M, 8)
  shared q: i32[8], v: i32[8], y: f16[8, N]
  q = Q[b*8]
  v = V[b*8]
  parallel (i, j) in (8, N) {{ y[i, j] = select({condition}, X[q[i], j], 0) }}
  Y[b*8, 0] = y
}}"""
V = np.array([1, 0, 1, 1, -2, 1, 1, 1, 0, 1, 0, 1, 3], np.int32)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("condition", "there"),
    [("v[i] > 0", V > 0), ("V[b*8 + i] == 1", V == 1), ("v[i] < W[b*8 + i]", V < 1), ("v[i] > 0 or q[i] == 4", V > 0),
     ("v[i] != 0 and v[i] != -2", V > 0)],
)  # fmt: skip
def test_an_index_that_a_mask_leaves_out_is_not_read(condition: str, there: np.ndarray) -> None:
    at = np.where(there, np.arange(13) % 8, [100, -7, 8, -1, 9] * 2 + [100, -7, 8]).astype(np.int32)
    given = {"X": X, "Q": at, "V": V, "W": np.ones(13, np.int32)}
    wanted = np.where(there[:, None], X[np.clip(at, 0, 7)], np.float16(0))
    masked = load_text(MASKED.format(condition=condition), "k.tile").instantiate()
    ran = lower(masked).run(given)
    assert not ran.findings
    np.testing.assert_array_equal(ran.outputs["Y"], wanted)
    np.testing.assert_array_equal(meaning(masked, given)["Y"], wanted)


def test_an_index_that_a_mask_lets_through_has_to_be_there() -> None:
    given = {"X": X, "Q": np.full(13, 9, np.int32), "V": V, "W": V}
    with pytest.raises(TileError, match="an index of `X` that is read is 9: dimension 0 has 8 elements"):
        meaning(load_text(MASKED.format(condition="v[i] > 0"), "k.tile").instantiate(), given)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("dtype", "numpy"), [("u8", np.uint8), ("i8", np.int8), ("i16", np.int16), ("u16", np.uint16)])
def test_masks_and_indices_may_be_shorter_whole_numbers(dtype: str, numpy: type) -> None:
    text = f"""kernel k[M=13, N=24, R=8](X: f16[R, N], Q: {dtype}[M], V: {dtype}[M]) -> Y: f16[M, N] {{
      grid b = ceildiv(M, 8)
      shared q: {dtype}[8], y: f16[8, N]
      q = Q[b*8]
      parallel (i, j) in (8, N) {{ y[i, j] = select(V[b*8 + i] > 0, X[q[i], j], 0) }}
      Y[b*8, 0] = y
    }}"""
    there = V > 0
    given = {"X": X, "Q": np.where(there, np.arange(13) % 8, 100).astype(numpy), "V": there.astype(numpy)}
    read = load_text(text, "k.tile").instantiate()
    ran = lower(read).run(given)
    assert not ran.findings
    np.testing.assert_array_equal(ran.outputs["Y"], np.where(there[:, None], X[np.arange(13) % 8], np.float16(0)))


def test_indices_are_drawn_inside_where_a_mask_lets_them_through() -> None:
    masked = load_text(MASKED.format(condition="v[i] > 0"), "k.tile").instantiate()
    drawn = drawn_sets(masked, ["uniform"], 0)[0].arrays["Q"]
    assert drawn.min() >= 0 and drawn.max() < 8


@pytest.mark.slow
def test_rows_behind_a_group_may_lie_outside_of_the_tensor() -> None:
    text = """kernel k[G=3, M=40, N=24, BM=8](A: f16[M, N], off: i32[G], ln: i32[G]) -> Y: f16[G, 32, N] {
      grid (bx, g) = (4, G)
      shared x: f16[BM, N]
      parallel (i, j) in (BM, N) { x[i, j] = select(bx*BM + i < ln[g], A[off[g] + bx*BM + i, j], 0) }
      Y[g, bx*BM, 0] = x
    }"""
    a, off, ln = np.random.default_rng(0).uniform(-1, 1, (40, 24)).astype(np.float16), [0, 10, 31], [10, 21, 9]
    given = {"A": a, "off": np.array(off, np.int32), "ln": np.array(ln, np.int32)}
    ran = lower(load_text(text, "k.tile").instantiate()).run(given)
    assert not ran.findings
    wanted = [np.pad(a[o : o + n], ((0, 32 - n), (0, 0))) for o, n in zip(off, ln, strict=True)]
    np.testing.assert_array_equal(ran.outputs["Y"], wanted)
