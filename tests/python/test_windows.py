"""Windows that begin before their tensor or lie across it, and stores that a tensor's end cuts off."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference import run_kernel
from tile_eg.ir.reference_values import run_values
from tile_eg.search.compiler import lower


def kernel(body: str, sizes: str = "M=20, N=40, BM=16, BN=32") -> Kernel:
    grid = "grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))"
    return load_text(f"kernel k[{sizes}](X: f32[M, N]) -> Y: f32[M, N] {{ {grid} {body} }}", "k.tile").instantiate()


def arrays(m: int = 20, n: int = 40) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {"X": rng.standard_normal((m, n)).astype(np.float32)}


def ran(k: Kernel, given: dict[str, np.ndarray]) -> np.ndarray:
    """What the emitted text computes; its values and its meaning are the same."""
    got = lower(k, "910B2").run(given).outputs["Y"]
    assert (got == run_kernel(k, given)["Y"]).all()
    assert (got == run_values(to_values(k), given)["Y"]).all()
    return got


def shifted(x: np.ndarray, rows: int, cols: int, value: float) -> np.ndarray:
    """x[i + rows, j + cols] at (i, j), and a number where there is none."""
    big = np.full((x.shape[0] + 2 * 8, x.shape[1] + 2 * 8), value, np.float32)
    big[8:-8, 8:-8] = x
    return big[8 + rows : 8 + rows + x.shape[0], 8 + cols : 8 + cols + x.shape[1]]


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(("rows", "cols", "value"), [(-3, -2, -1.5), (2, 1, 0.0), (0, -8, 4.0), (-1, 0, 0.0)])
def test_a_number_stands_where_a_tensor_has_no_elements(rows: int, cols: int, value: float) -> None:
    k = kernel(f"shared x: f32[BM, BN] x = pad(X[bx*BM + {rows}, by*BN + {cols}], {value}) Y[bx*BM, by*BN] = x")
    given = arrays()
    assert (ran(k, given) == shifted(given["X"], rows, cols, value)).all()


@pytest.mark.slow
def test_elements_of_a_tile_with_a_border_are_those_of_the_tensor() -> None:
    body = "shared x: f32[BM + 2, BN + 2] fragment y: f32[BM, BN] x = pad(X[bx*BM - 1, by*BN - 1], 2)"
    body += " parallel (i, j) in (BM, BN) { y[i, j] = x[i, j + 2] - x[i + 2, j + 1] } Y[bx*BM, by*BN] = y"
    given = arrays()
    assert (ran(kernel(body), given) == shifted(given["X"], -1, 1, 2.0) - shifted(given["X"], 1, 0, 2.0)).all()


@pytest.mark.slow
def test_an_element_loop_reads_beyond_a_tensor() -> None:
    body = "fragment y: f32[BM, BN] parallel (i, j) in (BM, BN) { y[i, j] = pad(X[bx*BM + i - 2, by*BN + j], 7) + 1 }"
    body += " Y[bx*BM, by*BN] = y"
    given = arrays()
    assert (ran(kernel(body), given) == shifted(given["X"], -2, 0, 7.0) + 1).all()


@pytest.mark.slow
def test_a_plain_index_beyond_its_tensor_leaves_the_number_alone() -> None:
    body = "shared x: f32[BN] x = pad(X[bx - 1, by*BN], 3) Y[bx, by*BN] = x"
    given = arrays(4)
    assert (ran(kernel(body, "M=4, N=40, BM=1, BN=32"), given) == shifted(given["X"], -1, 0, 3.0)).all()


def test_more_than_a_block_of_bytes_before_a_row_is_refused() -> None:
    with pytest.raises(TileError, match="begins 9 elements before those of `X`"):
        to_values(kernel("shared x: f32[BM, BN] x = pad(X[bx*BM, by*BN - 9], 0) Y[bx*BM, by*BN] = x"))


def test_without_a_number_a_window_has_to_begin_inside() -> None:
    with pytest.raises(TileError, match="lies outside") as caught:
        lower(kernel("shared x: f32[BM, BN] x = X[bx*BM - 1, by*BN] Y[bx*BM, by*BN] = x"), "910B2")
    assert "pad(X[i - 1, j], 0)" in caught.value.help


@pytest.mark.slow
def test_one_column_of_a_tensor_is_a_vector() -> None:
    text = """kernel k[M=20, N=5, BM=16](X: f32[M, N], H: f16[M, N]) -> Y: f32[M, N] {
      grid (bx, n) = (ceildiv(M, BM), N)
      shared v: f32[BM], h: f16[BM]
      v = X[bx*BM : bx*BM + BM, n]
      h = H[bx*BM : bx*BM + BM, N - 1 - n]
      Y[bx*BM : bx*BM + BM, n] = v * 2 + f32(h)
    }"""
    x, h = np.arange(100, dtype=np.float32).reshape(20, 5), np.ones((20, 5), np.float16) * np.arange(5, dtype=np.float16)
    given = {"X": x, "H": h}
    assert (ran(load_text(text, "k.tile").instantiate(), given) == x * 2 + h[:, ::-1]).all()


def test_columns_of_several_matrices_are_refused() -> None:
    text = "kernel k[M=8](X: i32[2, M, M]) -> Y: i32[2, M] { grid b = 1 shared v: i32[2, M] v = X[0:2, 0:M, 2] Y[0, 0] = v }"
    with pytest.raises(TileError, match="do not lie side by side in `X`"):
        lower(load_text(text, "k.tile").instantiate(), "910B2")


@pytest.mark.slow
@pytest.mark.parametrize("op", ["d * 1.5 + 0.25", "d + cumsum(d, 0)"])
def test_what_a_loop_has_made_is_stored_as_far_as_the_tensor_goes(op: str) -> None:
    body = f"fragment d: f32[BM, BN] = 1 for k in serial(3) {{ d = {op} }} Y[bx*BM, by*BN] = d"
    assert np.isfinite(ran(kernel(body), arrays())).all()


@pytest.mark.slow
def test_a_product_of_whole_tiles_is_stored_as_far_as_the_tensor_goes() -> None:
    text = """kernel k[M=40, N=72, K=64](A: f16[M, K], W: f16[64, K]) -> Y: f32[M, N] {
      grid (bx, by) = (ceildiv(M, 32), ceildiv(N, 64))
      shared a: f16[32, K], w: f16[64, K]
      fragment c: f32[32, 64] = 0
      a = pad(A[bx*32, 0], 0)
      w = W[0, 0]
      for k in serial(2) { c += a @ w.T }
      Y[bx*32, by*64] = c
    }"""
    rng = np.random.default_rng(0)
    a, w = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((40, 64), (64, 64)))
    got = ran(load_text(text, "k.tile").instantiate(), {"A": a, "W": w})
    assert (got == 2 * a.astype(np.float32) @ np.concatenate([w, w[:8]]).T.astype(np.float32)).all()


@pytest.mark.slow
def test_what_a_loop_begins_with_ends_where_its_trips_do() -> None:
    """The state of an inner loop over rows, whose tiles a tensor's end cuts off."""
    body = "shared x: f32[BM, BN] fragment h: f32[BM, BN] = 0, y: f32[BM, BN] x = X[bx*BM, by*BN]"
    body += " for t in serial(BM) { h = h * x[t, :][None, :] + x[t, :][None, :] y[t, :] = colsum(h) } Y[bx*BM, by*BN] = y"
    given = arrays(16, 40)
    got = lower(kernel(body, "M=16, N=40, BM=16, BN=32"), "910B2").run(given).outputs["Y"]
    state, want = np.zeros(40, np.float32), []
    for row in given["X"]:
        state = state * row + row
        want.append(16 * state)
    assert np.allclose(got, want, rtol=1e-5, atol=1e-5)
