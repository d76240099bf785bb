"""The sizes and numbers that a call passes, as Python's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError
from tile_eg.ops.types import has_room

if TYPE_CHECKING:
    from tile_eg.frontend.python import Argument


def size_of(name: str, value: Any) -> int:
    """A size that a call tells. TileError for what is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
        raise TileError(f"the size {name} is a whole number from 0 on, not {value!r}")
    return int(value.__index__())


def whole(a: Argument) -> bool:
    """Whether a number that a call passes is a whole one."""
    return a.dtype.name not in ("f16", "bf16", "f32")


def number_of(a: Argument, value: Any) -> Any:
    """A number that a call passes, whole where its type is. TileError for what is none, or has no room in its type."""
    is_whole, array = whole(a), bool(getattr(value, "shape", ()))
    if isinstance(value, bool) or array or not hasattr(value, "__index__" if is_whole else "__float__"):
        help = f'an array is declared with its shape: {a.name}: T.Tensor((m, n), "{a.dtype.numpy}")' if array else ""
        shown = "an array" if array else repr(value)
        raise TileError(f"{a.name} is a {'whole ' if is_whole else ''}number, not {shown}", a.span, help=help)
    found = int(value.__index__()) if is_whole else float(value)
    if not has_room(a.dtype, found):
        raise TileError(f"{a.name} is {a.dtype}, which has no room for {value!r}", a.span)
    return found
