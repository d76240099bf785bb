"""Element loops whose elements lie at places of their own, in tiles and tensors that end early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.fuzz.outcome import outcome
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")


def by_element(line: str, shape: str = "f32[N, N]") -> str:
    """A kernel of N elements, 16 a block, by this line."""
    return f"kernel k[N=20](A: {shape}) -> C: f32[N] {{ grid b = ceildiv(N, 16) shared d: f32[16] {line} C[b*16] = d }}"


@pytest.mark.slow
@pytest.mark.parametrize("at", ["b*16 + i, b*16 + i", "19 - b*16 - i, b*16 + i", "b*16 + i, (b*16 + i) // 2"])
def test_elements_at_places_of_their_own_end_with_the_tensor(at: str) -> None:
    assert outcome(by_element(f"parallel i in 16 {{ d[i] = A[{at}] }}")).kind == "good"


@pytest.mark.slow
def test_a_diagonal_of_rows_is_read_row_by_row() -> None:
    text = """kernel k[N=20](A: f32[N, N, 8]) -> C: f32[N, 8] {
      grid b = 2
      parallel (i, j) in (16, 8) { C[b*16 + i, j] = A[b*16 + i, b*16 + i, j] }
    }"""
    assert outcome(text).kind == "good"


@pytest.mark.slow
def test_what_a_loop_makes_of_a_padded_tile_is_not_kept_where_the_target_ends_in_it() -> None:
    text = """kernel k[M=21, N=75](B: f32[M, N]) -> (O: f32[M, N], V: f32[M]) {
      grid b = 2
      shared x: f32[16, 32], y: f32[16, 32], v: f32[16]
      x = pad(B[b*16, 0], 1.5)
      v = rowsum(x)
      for j in serial(3) { y = x + 0.75  O[b*16, j*32] = y * 0.75 }
      V[b*16] = v
    }"""
    assert outcome(text).kind == "good"


def stored(turn: bool) -> Any:
    @tile_eg.jit(out_idx=[1], effort="none")
    @T.prim_func
    def main(B: T.Tensor((21, 32), "float32"), O: T.Tensor((21, 32), "float32")):  # noqa: E741
        with T.Kernel(2, threads=2, is_npu=True) as b:
            x, y = T.alloc_shared((16, 32), "float32"), T.alloc_shared((16, 32), "float32")
            T.copy(B[b * 16, 0], x)
            T.tile.max(y, x, x)
            if turn:
                for i, k in T.Parallel(16, 32):
                    y[i, k] = x[15 - i, k]
            else:
                for i, k in T.Parallel(16, 32):
                    y[i, k] = x[i, k // 2]
            T.copy(y, O[b * 16, 0])

    return main


@pytest.mark.slow
def test_rows_that_are_not_there_are_zeros_where_they_are_put_elsewhere() -> None:
    b = np.arange(1, 21 * 32 + 1, dtype=np.float32).reshape(21, 32)
    assert np.array_equal(stored(turn=True)(b), np.concatenate([b[15::-1], np.zeros((5, 32))]))


@pytest.mark.slow
def test_a_gather_from_a_tile_that_ends_early_is_done_in_order() -> None:
    b = np.arange(21 * 32, dtype=np.float32).reshape(21, 32)
    assert np.array_equal(stored(turn=False)(b), b[:, np.arange(32) // 2])


def test_a_tile_is_not_filled_with_an_element_that_exists_nowhere() -> None:
    text = """kernel k(V: f32[10]) -> O: f32[16, 8] {
      grid b = 1
      shared v: f32[16], o: f32[16, 8]
      v = V[0]
      o = v[12]
      O[0, 0] = o
    }"""
    with pytest.raises(TileError, match="`v` ends after 10 here, as its tensor does: there is no element 12"):
        lower(load_text(text, "k.tile").instantiate())
