"""A tile and a number for each of its rows: row_expand_mul, _sub and _div, and brcb, which repeats numbers over 32 bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

OPS = {"mul": np.multiply, "sub": np.subtract, "div": np.divide}
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (8, 64)).astype(np.float32)
V = RNG.uniform(1, 2, 8).astype(np.float32)


def searched(lines: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), S: T.Tensor((8,), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1) as _:
            x, v = T.alloc_shared((8, 64), "float32"), T.alloc_shared((8,), "float32")
            wide = T.alloc_shared((8, 8), "float32")
            T.copy(A, x)
            T.copy(S, v)
            lines(x, v, wide)
            T.copy(x, C)

    return tile_eg.compile(main, out_idx=[-1])


def kept(lines: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), S: T.Tensor((8,), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1) as _:  # noqa: SIM117
            with T.Scope("V"):
                x, v = T.alloc_ub((8, 64), "float32"), T.alloc_ub((8,), "float32")
                wide = T.alloc_ub((8, 8), "float32")
                T.copy(A, x)
                T.copy(S, v)
                T.barrier_all()
                lines(x, v, wide)
                T.barrier_all()
                T.copy(x, C)

    return tile_eg.compile(main, out_idx=[-1])


def by_numbers(op: str, tmp: bool) -> Any:
    word = getattr(T.tile, f"row_expand_{op}_experiment")

    @T.macro
    def with_room(x, v, wide):
        word(x, x, v, wide)

    @T.macro
    def alone(x, v, wide):
        word(x, x, v)

    return with_room if tmp else alone


def by_blocks(op: str) -> Any:
    word = getattr(T.tile, f"row_expand_{op}_experiment")

    @T.macro
    def lines(x, v, wide):
        T.tile.brcb_experiment(wide, v, 1, 1, 8)
        word(x, x, wide)

    return lines


@pytest.mark.slow
@pytest.mark.few(3)
@pytest.mark.parametrize("kind", [searched, kept])
@pytest.mark.parametrize("op", OPS)
def test_each_row_has_its_own_number(kind: Any, op: str) -> None:
    np.testing.assert_allclose(kind(by_numbers(op, kind is kept))(X, V), OPS[op](X, V[:, None]), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [searched, kept])
@pytest.mark.parametrize("op", ["sub"])
def test_each_row_has_its_own_block(kind: Any, op: str) -> None:
    np.testing.assert_allclose(kind(by_blocks(op))(X, V), OPS[op](X, V[:, None]), rtol=1e-6)


@T.macro
def unlike_blocks(x, v, wide):
    T.copy(x[:, 0:8], wide)
    T.tile.row_expand_mul_experiment(x, x, wide)


@pytest.mark.slow
def test_a_block_is_repeated_along_its_row() -> None:
    """Its eight numbers may differ."""
    np.testing.assert_array_equal(searched(unlike_blocks)(X, V), X * np.tile(X[:, :8], 8))


@T.macro
def too_few(x, v, wide):
    T.tile.row_expand_mul_experiment(x, x, v[0:4])


@T.macro
def blocks_apart(x, v, wide):
    T.tile.brcb(wide, v, 1, 2, 16)


@pytest.mark.parametrize(
    ("lines", "what"), [(too_few, "8 x 64 elements have 8 rows, and there are 4"), (blocks_apart, "blocks 2 and groups 16")]
)
def test_what_does_not_fit_is_refused(lines: Any, what: str) -> None:
    with pytest.raises(TileError, match=what):
        kept(lines)
