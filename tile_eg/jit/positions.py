"""The positions of tensors that a call gives back or makes for itself: `out_idx`, `workspace_idx`."""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.errors import TileError
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel


def output_position(i: int, kernel: Kernel | KeptKernel, what: str) -> int:
    """The position, counted from the front, of a tensor that the kernel writes. TileError where it is not one."""
    count = len(kernel.tensors)
    if isinstance(i, bool) or not isinstance(i, int) or not -count <= i < count:
        raise TileError(f"{what}: {i!r} is not the position of one of the {count} arguments of {kernel.name}")
    if not kernel.tensors[i].output:
        raise TileError(f"{kernel.tensors[i].name} is in {what}, and {kernel.name} never writes it", kernel.tensors[i].span)
    return i % count


def positions_of(value: int | Sequence[int] | None, what: str) -> tuple[int, ...]:
    if value is None:
        return ()
    if not isinstance(value, int | Sequence) or isinstance(value, str):
        raise TileError(f"{what} is a position, or a list of them, not {value!r}")
    return (value,) if isinstance(value, int) else tuple(value)
