"""A launch has at most 65535 blocks: kernels with more tiles go through several in a block, or are refused."""

from __future__ import annotations

import pytest

from tile_eg.emit.host import launch_blocks
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.machine import MAX_BLOCKS
from tile_eg.search import search_options
from tile_eg.search.compiler import lower


def doubled(tiles: int) -> Kernel:
    text = """
kernel doubled[M=16, N=128](A: f16[M, N]) -> C: f16[M, N] {
  grid (bx) = (M // 16)
  shared a: f16[16, N]
  a = A[bx*16, 0]
  C[bx*16, 0] = a * 2
}
"""
    return load_text(text).instantiate({"M": tiles * 16})


@pytest.mark.slow
def test_more_tiles_than_a_launch_has_blocks_are_gone_through() -> None:
    made = lower(doubled(MAX_BLOCKS + 1), search=search_options(effort="quick"))
    assert launch_blocks(made.program) <= MAX_BLOCKS
    assert all(launch_blocks(c.planned.program) <= MAX_BLOCKS for c in made.candidates)


def test_a_launch_of_too_many_blocks_is_refused() -> None:
    with pytest.raises(TileError, match="at most 65535 blocks, and this kernel would have 262144"):
        lower(doubled(2 * (MAX_BLOCKS + 1)), search=search_options(effort="none"))
