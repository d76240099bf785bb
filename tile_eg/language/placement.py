"""Words by which an author says where a tile lies, and in which order a kernel's tiles are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tile_eg.language.words import word
from tile_eg.ops.records import record


@word
def alloc_L1(shape: Sequence[int], dtype: Any) -> Any:  # noqa: N802
    """A tile in L1: an operand of products."""


@word
def alloc_ub(shape: Sequence[int], dtype: Any) -> Any:
    """A tile in UB, where the vector cores compute."""


@word
def alloc_L0A(shape: Sequence[int], dtype: Any) -> Any:  # noqa: N802
    """A left operand of `T.mma`, copied from L1."""


@word
def alloc_L0B(shape: Sequence[int], dtype: Any) -> Any:  # noqa: N802
    """A right operand of `T.mma`, copied from L1."""


@word
def alloc_L0C(shape: Sequence[int], dtype: Any) -> Any:  # noqa: N802
    """A result of products."""


@record
class Layout:
    """How a tile lies in L1: zN, nZ or column major."""

    name: str


@word
def make_zn_layout(buffer: Any) -> Any:
    """Fractals of 16 rows of 32 bytes, one below the other; each by rows."""


@word
def make_nz_layout(buffer: Any) -> Any:
    """Fractals of 16 rows of 32 bytes, one beside the other; each by columns."""


@word
def make_col_major_layout(buffer: Any) -> Any:
    """Column by column."""


@word
def annotate_layout(layouts: Mapping[Any, Any]) -> None:
    """How tiles lie in L1. What they hold does not depend on it; how they lie is found."""


@word
def use_swizzle(
    index: Any = None,
    M: Any = None,  # noqa: N803
    N: Any = None,  # noqa: N803
    K: Any = None,  # noqa: N803
    block_M: Any = None,  # noqa: N803
    block_N: Any = None,  # noqa: N803
    off: int = 1,
    dir: int = 0,
    in_loop: bool = False,
    *,
    panel_size: Any = None,
    order: str = "row",
    enable: bool = True,
) -> Any:
    """Another order of a kernel's tiles, which is found here: where nothing else goes by the index, the result of
    `T.use_swizzle(cid, M, N, K, block_M, block_N)` is it, else the tile at that place in bands of `off` rows (`dir` 0) or columns
    (1), each other band backwards; `T.use_swizzle(panel_size)` changes nothing."""


@word
def Persistent(domain: Sequence[int], wave_size: int, index: Any, group_size: int = 8) -> Any:  # noqa: N802
    """A loop over all tiles of `domain`, shared among the blocks: `for bx, by in T.Persistent([m, n], blocks, cid)`.

    Each tile is done once, by some block; which one, and in which order, is found. It is the whole body but for buffers and what
    the tiles have in common, `wave_size` is the number of blocks, and `index` is the block's.
    """
