"""Names of GPU kernels that mean nothing on an NPU, for kernels that are written for both."""

from __future__ import annotations

from enum import Enum


class GemmWarpPolicy(Enum):
    """How the warps of a GPU share a product."""

    Square = "square"
    FullRow = "rows"
    FullCol = "columns"
