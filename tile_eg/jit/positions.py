"""The tensors that `out_idx` and `workspace_idx` name by their positions among the arguments of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.errors import TileError
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel, Tensor


def positions_of(value: int | Sequence[int] | None, what: str) -> tuple[int, ...]:
    if value is None:
        return ()
    if not isinstance(value, int | Sequence) or isinstance(value, str):
        raise TileError(f"{what} is a position, or a list of them, not {value!r}")
    return (value,) if isinstance(value, int) else tuple(value)


def output_at(i: int, kernel: Kernel | KeptKernel, what: str) -> int:
    """The position, counted from the front, of a tensor that the kernel writes. TileError where it is not one."""
    count = len(kernel.tensors)
    if isinstance(i, bool) or not isinstance(i, int) or not -count <= i < count:
        help = "positions are " + ", ".join(f"{k} ({t.name})" for k, t in enumerate(kernel.tensors)) + "; -1 is the last"
        raise TileError(f"{what}: {i!r} is not the position of one of the {count} arguments of {kernel.name}", help=help)
    if not kernel.tensors[i].output:
        name = kernel.tensors[i].name
        others = ", ".join(f"{k} ({t.name})" for k, t in enumerate(kernel.tensors) if t.output)
        help = f"what it writes is at {others}" if others else f"store a tile to it: T.copy(x, {name}[i, j])"
        raise TileError(f"{name} is in {what}, and {kernel.name} never writes it", kernel.tensors[i].span, help=help)
    return i % count


def refuse_given(t: Tensor) -> None:
    """TileError for a tensor that a call makes for itself, and that the kernel reads first: nothing is there yet."""
    if t.given:
        help = "write it first; or take it out of out_idx and workspace_idx, and pass an array"
        raise TileError(f"`{t.name}` is read before it is written, and no call gives it", t.span, help=help)
