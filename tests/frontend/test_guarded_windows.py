"""Choices by position that leave out elements of a tensor, which some blocks do not have: borders of images, causal filters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tile_eg.errors import NotSearched, TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.printer import print_kernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference import run_kernel, run_values
from tile_eg.jit import load
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

TEXT = """kernel border[H=20, W=33, BM=8](X: f32[H, W]) -> Y: f32[H, W] {
  grid b = ceildiv(H, BM)
  shared y: f32[BM, W]
  parallel (i, j) in (BM, W) { y[i, j] = BODY }
  Y[b*BM, 0] = y
}
"""
SIZES = [(20, 33), (1, 8), (9, 16)]
UP, DOWN = "select(b*BM + i > 0, X[b*BM + i - 1, j], 0)", "select(b*BM + i < H - 1, X[b*BM + i + 1, j], 0)"
LEFT, RIGHT = "select(j > 0, X[b*BM + i, j - 1], 0)", "select(j + 1 < W, X[b*BM + i, j + 1], 0)"


def shifted(x: np.ndarray, down: int, right: int, fill: float = 0) -> np.ndarray:
    padded = np.pad(x, 2, constant_values=fill)
    return padded[2 + down : 2 + down + len(x), 2 + right : 2 + right + x.shape[1]]


BODIES = {
    UP: lambda x: shifted(x, -1, 0),
    DOWN: lambda x: shifted(x, 1, 0),
    UP.replace(", 0)", ", -7)"): lambda x: shifted(x, -1, 0, -7),
    DOWN.replace(", 0)", ", -7)"): lambda x: shifted(x, 1, 0, -7),
    "select(b*BM + i < 1, 5, X[b*BM + i - 1, j] * 2)": lambda x: np.concatenate([np.full((1, x.shape[1]), 5), x[:-1] * 2]),
    "select(b*BM + i > 0, X[b*BM + i - 1, j], X[b*BM + i, j])": lambda x: np.concatenate([x[:1], x[:-1]]),
    "select(b*BM + i > 0 and j > 0, X[b*BM + i - 1, j - 1], 0)": lambda x: shifted(x, -1, -1),
    LEFT: lambda x: shifted(x, 0, -1),
    f"{UP} + {DOWN} + {LEFT} + {RIGHT} - 4*X[b*BM + i, j]": lambda x: sum(
        shifted(x, d, r) for d, r in ((-1, 0), (1, 0), (0, -1), (0, 1))
    ) - 4 * x,
}  # fmt: skip


def at(text: str, **sizes: int) -> Kernel:
    return load_text(text).instantiate(sizes)


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_what_a_condition_leaves_out_is_not_read(body: str, size: tuple[int, int]) -> None:
    x, kernel = drawn(*size), at(TEXT.replace("BODY", body), H=size[0], W=size[1])
    np.testing.assert_allclose(run_kernel(kernel, {"X": x})["Y"], BODIES[body](x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run_values(to_values(kernel), {"X": x})["Y"], BODIES[body](x), rtol=1e-5, atol=1e-6)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("body", [LEFT, [*BODIES][-1]], ids=["one side", "all sides"])
def test_it_is_right_in_what_comes_out(body: str) -> None:
    x = drawn(9, 16)
    ran = lower(at(TEXT.replace("BODY", body), H=9, W=16), search=search_options(effort="none")).run({"X": x})
    assert not ran.findings
    np.testing.assert_allclose(ran.outputs["Y"], BODIES[body](x), rtol=1e-5, atol=1e-6)


FILTER = """kernel causal[L=37, D=8, K=4, BM=16](X: f32[L, D], W: f32[K, D]) -> Y: f32[L, D] {
  grid b = ceildiv(L, BM)
  shared w: f32[K, D]
  fragment a: f32[BM, D] = 0
  w = W[0, 0]
  for t in serial(K) {
    parallel (i, j) in (BM, D) {
      a[i, j] = a[i, j] + select(b*BM + i + t - (K - 1) >= 0, X[b*BM + i + t - (K - 1), j], 0) * w[t, j]
    }
  }
  Y[b*BM, 0] = a
}
"""


@pytest.mark.parametrize("length", [48, 16, 37, 2])
def test_a_causal_filter_begins_before_its_tensor(length: int) -> None:
    x, w = drawn(length, 8), drawn(4, 8)
    before = np.concatenate([np.zeros((3, 8)), x])
    meant = sum(before[t : t + length] * w[t] for t in range(4))
    found = run_values(to_values(at(FILTER, L=length)), {"X": x, "W": w})["Y"]
    np.testing.assert_allclose(found, meant, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_one_text_of_a_causal_filter_serves_all_lengths(tmp_path: Path) -> None:
    (tmp_path / "causal.tile").write_text(FILTER.replace("L=37", "L: dyn"))
    kernel = load(tmp_path / "causal.tile")
    for length in (0, 1, 37):
        x, w = drawn(length, 8), drawn(4, 8)
        before = np.concatenate([np.zeros((3, 8)), x])
        meant = sum(before[t : t + length] * w[t] for t in range(4))
        np.testing.assert_allclose(kernel(x, w), meant, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seen", ["s = s + colsum(a)", "Y[b*BM, 0] = a", "a = a - rowsum(a)[:, None]\n    s = s + colsum(a)"])
def test_one_that_is_seen_in_trips_that_end_elsewhere_is_told(seen: str) -> None:
    text = FILTER.replace("    }\n  }\n  Y", f"    }}\n    {seen}\n  }}\n  Y").replace("fragment", "fragment s: f32[D] = 0,")
    text = text.replace("Y[b*BM, 0] = a\n}", "Y[b*BM, 0] = a + s[None, :]\n}")
    with pytest.raises(TileError, match="the valid rows of `a` change from trip to trip"):
        to_values(at(text, L=37))


def test_one_of_which_more_is_seen_than_its_shortest_trip_leaves_is_told() -> None:
    text = FILTER.replace("Y: f32[L, D]", "Y: f32[L + 1, D]")
    with pytest.raises(TileError, match="the valid rows of `a` change from trip to trip"):
        to_values(at(text, L=37))


def test_what_lies_behind_the_end_still_does_not_exist() -> None:
    text = TEXT.replace("Y[b*BM, 0] = y", "s = colsum(y)\n  Y[b, 0] = s").replace("shared", "shared s: f32[W],")
    x = drawn(20, 33)
    found = run_values(to_values(at(text.replace("BODY", UP))), {"X": x})["Y"][:3]
    meant = [x[:7].sum(0), x[7:15].sum(0), x[15:20].sum(0)]  # the last row is read by one that is not stored
    np.testing.assert_allclose(found, meant, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_so_it_is_in_what_comes_out() -> None:
    body = "select(b*BM + i > 0, X[b*BM + i - 1, j] + 3, 7)"
    text = TEXT.replace("Y[b*BM, 0] = y", "s = colsum(y)\n  Y[b, 0] = s").replace("shared", "shared s: f32[W],")
    x = drawn(9, 16)
    ran = lower(at(text.replace("BODY", body), H=9, W=16), search=search_options(effort="none")).run({"X": x})
    meant = [x[:7].sum(0) + 28, x[7:9].sum(0) + 6]
    np.testing.assert_allclose(ran.outputs["Y"][:2], meant, rtol=1e-5, atol=1e-5)


def test_such_a_choice_is_printed_as_it_was_written() -> None:
    kernel = at(TEXT.replace("BODY", UP))
    assert at(print_kernel(kernel)) == kernel


@pytest.mark.slow
def test_no_more_is_read_of_a_row_that_may_not_exist_than_it_has() -> None:
    up, left = "select(b*BM + i > 2, X[b*BM + i - 3, j] + 1, -3)", "select(j >= 1, X[b*BM + i, j - 1], -3)"
    text = TEXT.replace("Y[b*BM, 0] = y", "r = rowsum(y)\n  Y[b*BM] = r").replace("Y: f32[H, W]", "Y: f32[H]")
    text = text.replace("shared", "shared r: f32[BM],").replace("BM=8", "BM=4").replace("BODY", f"{up} - {left}")
    x = drawn(3, 33)
    ran = lower(at(text, H=3, W=33), search=search_options(effort="none")).run({"X": x})
    assert not ran.findings
    meant = np.full((3, 33), -3.0) - shifted(x, 0, -1)
    meant[:, 0] = 0
    np.testing.assert_allclose(ran.outputs["Y"], meant.sum(1), rtol=1e-5, atol=1e-4)


@pytest.mark.slow
def test_windows_with_different_ends_one_behind_the_other_end_with_the_shortest() -> None:
    up, far = "select(b*BM + i >= 3, X[b*BM + i - 3, j] + 1, -3)", "select(b*BM + i > 0, X[b*BM + i - 1, j], 7)"
    text = TEXT.replace("Y[b*BM, 0] = y", "r = rowsum(y)\n  Y[b*BM] = r").replace("Y: f32[H, W]", "Y: f32[H]").replace("BODY", up)
    text = text.replace("  r = ", f"  parallel (i, j) in (BM, W) {{ y[i, j] = y[i, j] + {far} }}\n  r = ")
    x = drawn(1, 16)
    ran = lower(at(text.replace("shared", "shared r: f32[BM],"), H=1, W=16), search=search_options(effort="none")).run({"X": x})
    assert not ran.findings
    np.testing.assert_allclose(ran.outputs["Y"], [16 * 4], rtol=1e-6)


PADDED = """kernel padded[R=50, M=24, BM=16, BN=32](X: f32[R, M]) -> Z: f32[BM] {
  grid bx = 1
  fragment x: f32[BM, BN], m: f32[BM] = inf
  for t in serial(ceildiv(R, BM)) {
    parallel (i, j) in (BM, BN) { x[i, j] = select(j < M, X[t*BM + i, j], 5) }
    m = min(m, rowmin(x))
  }
  Z[0] = m
}
"""


def test_a_choice_that_fills_up_rows_ends_where_its_tensor_does_as_a_copy_would() -> None:
    with pytest.raises(NotSearched, match=r"the valid columns of `m` change from trip to trip.*: min\(50 - t\*16, 16\)"):
        to_values(load_text(PADDED).instantiate())
    to_values(load_text(PADDED).instantiate({"R": 48}))
