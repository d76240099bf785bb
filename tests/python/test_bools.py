"""Tensors and buffers of bools: bytes that are 0 or 1."""

from __future__ import annotations

import functools
import runpy
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.cli.app import run
from tile_eg.errors import TileError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 64)).astype(np.float32)
K, J = RNG.random((20, 64)) > 0.5, RNG.random(64) > 0.3


@functools.cache
def masked() -> Any:
    M = T.symbolic("M")

    @tile_eg.jit(out_idx=[-2, -1])
    @T.prim_func
    def masked(
        X: T.Tensor((M, 64), "float32"), K: T.Tensor((M, 64), T.bool), J: T.Tensor((64,), "bool"),
        Y: T.Tensor((M, 64), "float32"), P: T.Tensor((M, 64), "bool"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, 8)) as b:
            x, p = T.alloc_shared((8, 64), "float32"), T.alloc_shared((8, 64), "bool")
            k = T.alloc_shared((8, 64), "bool")
            T.copy(X[b * 8, 0], x)
            T.copy(K[b * 8, 0], k)
            for i, j in T.Parallel(8, 64):
                p[i, j] = (x[i, j] > 0) & ~k[i, j]
                p[i, j] |= J[j]
                x[i, j] = T.if_then_else(k[i, j] and J[j], x[i, j], -1.0)
                if not J[j]:
                    x[i, j] = x[i, j] + k[i, j]
            T.copy(x, Y[b * 8, 0])
            T.copy(p, P[b * 8, 0])

    return masked


@pytest.mark.slow
def test_bools_are_conditions_where_they_are_looked_at() -> None:
    y, p = masked()(X, K, J)
    chosen = np.where(K & J, X, np.float32(-1))
    np.testing.assert_array_equal(y, np.where(J, chosen, chosen + K))
    np.testing.assert_array_equal(p, ((X > 0) & ~K) | J)


def test_an_output_of_bools_is_given_back_as_bools() -> None:
    assert masked()(X, K, J)[1].dtype == np.bool_


def test_bytes_are_not_taken_for_bools() -> None:
    with pytest.raises(TileError, match="'K' has elements of type uint8, not bool") as caught:
        masked()(X, K.astype(np.uint8), J)
    assert caught.value.help == "compare it: K != 0"


def kernel(body: str, tmp_path: Any) -> str:
    """A file with a kernel of such a body."""
    text = f"""
import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
@T.prim_func
def k(X: T.Tensor((8, 64), "float32"), K: T.Tensor((8, 64), "bool"), Y: T.Tensor((8, 64), "bool")):
    with T.Kernel(1):
        x, k, y = T.alloc_shared((8, 64), "float32"), T.alloc_shared((8, 64), "bool"), T.alloc_shared((8, 64), "bool")
        T.copy(X[0, 0], x)
        T.copy(K[0, 0], k)
        {body}
        T.copy(y, Y[0, 0])
"""
    (tmp_path / "k.py").write_text(text)
    return str(tmp_path / "k.py")


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("body", ["for i, j in T.Parallel(8, 64): y[i, j] = x[i, j]", "T.fill(y, 3)"])
def test_what_is_stored_in_bools_is_whether_it_is_not_0(body: str, tmp_path: Any) -> None:
    assert run(["run", kernel(body, tmp_path)]) == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [("T.copy(x, y)", "what is copied are numbers"), ("T.tile.add(y, k, k)", "this may be another number than 0 or 1")],
    ids=["a copy", "a sum"],
)
def test_other_numbers_than_0_and_1_are_refused(body: str, message: str, tmp_path: Any, capsys: Any) -> None:
    assert run(["check", kernel(body, tmp_path)]) == 1
    assert message in capsys.readouterr().err


IN_ORDER = """
@tile_eg.jit(out_idx=[-1])
@T.prim_func
def blocks(
    X: T.Tensor((4, 16, 64), "float32"), M: T.Tensor((2, 4), "bool"), K: T.Tensor((16, 64), "bool"),
    Y: T.Tensor((2, 16, 64), "{y}"),
):
    with T.Kernel(2) as b:
        x, y = T.alloc_shared((16, 64), "float32"), T.alloc_shared((16, 64), "{y}")
        m, k = T.alloc_fragment((4,), "bool"), T.alloc_shared((16, 64), "bool")
        T.clear(y)
        T.copy(M[b, :], m)
        T.copy(K, k)
        for i in T.serial(4):
            if m[i] != 0:
                T.copy(X[i, 0, 0], x)
                {body}
            if not M[b, i]:
                T.fill(x, 1.0)
        T.copy(y, Y[b, 0, 0])
"""


SELECTED = """
@tile_eg.jit(out_idx=[-1])
@T.prim_func
def selected(X: T.Tensor((64,), "float32"), K: T.Tensor((64,), "bool"), Y: T.Tensor((64,), "float32")):
    with T.Kernel(1) as _:
        x, k, y = T.alloc_ub((64,), "float32"), T.alloc_ub((64,), "bool"), T.alloc_ub((64,), "float32")
        T.copy(X, x)
        T.copy(K, k)
        T.barrier_all()
        T.tile.select(y, k, x, 0.0, "VSEL_TENSOR_SCALAR_MODE")
        T.barrier_all()
        T.copy(y, Y)
"""


def test_a_selection_takes_a_byte_of_bools_for_an_element(tmp_path: Any) -> None:
    (tmp_path / "k.py").write_text("import tile_eg\nimport tile_eg.language as T\n" + SELECTED)
    x, k = RNG.uniform(-1, 1, 64).astype(np.float32), RNG.random(64) > 0.5
    np.testing.assert_array_equal(runpy.run_path(str(tmp_path / "k.py"))["selected"](x, k), np.where(k, x, 0))


def in_order(body: str, y: str, tmp_path: Any) -> str:
    """A file with a kernel that branches by bools which it reads, so that it is done in the order of its statements."""
    (tmp_path / "k.py").write_text("import tile_eg\nimport tile_eg.language as T\n" + IN_ORDER.format(body=body, y=y))
    return str(tmp_path / "k.py")


@pytest.mark.slow
def test_a_kernel_branches_by_bools_that_it_reads(tmp_path: Any) -> None:
    body = "for r, c in T.Parallel(16, 64): y[r, c] = T.if_then_else(k[r, c], y[r, c] + x[r, c], y[r, c] - 1)"
    names = runpy.run_path(in_order(body, "float32", tmp_path))
    x, m, k = RNG.integers(0, 9, (4, 16, 64)).astype(np.float32), RNG.random((2, 4)) > 0.5, RNG.random((16, 64)) > 0.5
    want = np.einsum("bi,irc->brc", m.astype(np.float32), np.where(k, x, np.float32(-1)))
    np.testing.assert_array_equal(names["blocks"](x, m, k), want)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("for r, c in T.Parallel(16, 64): y[r, c] = x[r, c] > 0.5", lambda x, k: x > 0.5),
        ('T.vcmp(x, 0.5, y, "lt"); T.vnot(y, y)', lambda x, k: x >= 0.5),
        ('T.vcmp(x, 0.5, y, "lt"); T.vand(y, k, y)', lambda x, k: (x < 0.5) & k),
        ("T.copy(k, y); T.fill(y[0, :], 3); y[2, 1] = x[0, 0] > 0.5", lambda x, k: written(x, k)),
    ],
    ids=["a loop", "inverted", "joined", "parts"],
)
def test_there_bools_are_computed_too(body: str, want: Any, tmp_path: Any) -> None:
    blocks = runpy.run_path(in_order(body, "bool", tmp_path))["blocks"]
    x, m, k = RNG.random((4, 16, 64)).astype(np.float32), np.zeros((2, 4), bool), RNG.random((16, 64)) > 0.5
    m[:, 2] = True
    np.testing.assert_array_equal(blocks(x, m, k), np.stack([want(x[2], k)] * 2))


def written(x: np.ndarray, k: np.ndarray) -> np.ndarray:
    k = k.copy()
    k[0], k[2, 1] = True, x[0, 0] > 0.5
    return k


def test_there_other_numbers_are_refused_too(tmp_path: Any, capsys: Any) -> None:
    assert run(["check", in_order("T.tile.add(k, k, k)", "float32", tmp_path)]) == 1
    assert "`k` holds bools, and this may be another number than 0 or 1" in capsys.readouterr().err
