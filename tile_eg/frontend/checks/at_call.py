"""A kernel at the whole numbers of one call: where they say which windows it takes, these lie in their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_eg.frontend.checks.kernel import check
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.known_numbers import at_numbers


def checked_at(kernel: Kernel, numbers: Mapping[str, Any]) -> Kernel:
    """The kernel at the whole numbers of a call. TileError where they pick what lies outside of a tensor."""
    if not kernel.wholes:
        return kernel
    found = at_numbers(kernel, numbers)
    check(found)
    return found
