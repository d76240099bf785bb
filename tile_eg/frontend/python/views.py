"""Views of buffers. The search has them as values, which do not change with the buffer and are not written; where one is used
otherwise, the kernel is done in the order of its statements, in which it is the memory of the buffer."""

from __future__ import annotations

from typing import Any

from tile_eg.ir.kernel import Whole


def is_view(value: Any) -> bool:
    """Whether a value is what T.reshape or T.view gives."""
    return isinstance(value, Whole) and value.op == "reshape"
