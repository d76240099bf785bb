"""Names of GPU kernels that mean nothing on an NPU, for kernels that are written for both."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tile_eg.language.words import word


class GemmWarpPolicy(Enum):
    """How the warps of a GPU share a product."""

    Square = "square"
    FullRow = "rows"
    FullCol = "columns"


@word
def make_swizzled_layout(buffer: Any, k_major: bool = True, allow_pad: bool = True) -> Any:
    """How a tile lies in the shared memory of a GPU; how it lies here is found."""


@word
def Layout(shape: Any, forward_fn: Any) -> Any:  # noqa: N802
    """How a tile lies in the memory of a GPU, by a function of its indices; how it lies here is found."""


@word
def Fragment(  # noqa: N802
    shape: Any, forward_fn: Any = None, forward_thread_fn: Any = None, replicate: int = 1, forward_index_fn: Any = None
) -> Any:
    """How a tile lies in the registers of a GPU's threads; a block has no threads here."""


def hint(*args: Any) -> None:
    """Says how a GPU shares its registers, or what its compiler may take for granted: it means nothing here."""


HINTS = (
    "assume", "set_max_nreg", "no_set_max_nreg", "inc_max_nreg", "dec_max_nreg", "disable_warp_group_reg_alloc",
    "annotate_producer_reg_dealloc", "annotate_consumer_reg_alloc",
)  # fmt: skip
"""Words that change no result of a kernel."""
