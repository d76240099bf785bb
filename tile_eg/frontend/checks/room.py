"""Whether the tensors of a kernel fit the memory of a chip, its HBM, and each of its tiles at least that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from tile_eg.errors import TileError
from tile_eg.ir.kernel import Alloc, Kernel, Tensor, statements


def bytes_of(held: Tensor | Alloc) -> int:
    return prod(held.shape) * held.dtype.bytes


def tiles_of(kernel: Kernel) -> Iterator[Alloc]:
    return (s for s in statements(kernel.body) if isinstance(s, Alloc))


def check_room(kernel: Kernel, chip: str, memories: Mapping[str, int]) -> None:
    """Raises TileError where the tensors together, or a tile, need more bytes than the chip's HBM has; `memories` has those of
    all chips.

    Of what is smaller the search says which of the memories on the chip it does not fit.
    """
    sizes = {t.name: bytes_of(t) for t in kernel.tensors}
    needed = sum(sizes.values())
    if needed <= memories[chip]:
        _check_tiles(kernel, chip, memories[chip])
        return
    largest = max(kernel.tensors, key=bytes_of)
    if sizes[largest.name] > memories[chip]:
        what = f"`{largest.name}` needs {sized(sizes[largest.name])}"
    else:
        what = f"the tensors need {sized(needed)}, of them `{largest.name}` {sized(sizes[largest.name])}"
    error = TileError(f"{what}, and the HBM of {chip} has {sized(memories[chip])}", largest.span, help=_help(needed, memories))
    error.source = kernel.source
    raise error


def _check_tiles(kernel: Kernel, chip: str, held: int) -> None:
    for tile in tiles_of(kernel):
        if bytes_of(tile) > held:
            what = f"the tile `{tile.name}` needs {sized(bytes_of(tile))}, and even the HBM of {chip} has {sized(held)}"
            error = TileError(what, tile.span, help="smaller tiles")
            error.source = kernel.source
            raise error


def sized(count: int) -> str:
    """Bytes as a person reads them: 8,589,934,592 bytes (8 GiB)."""
    units: Sequence[str] = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min((count.bit_length() - 1) // 10, len(units)) if count else 0
    return f"{count:,} bytes" + (f" ({count / 1024**power:.4g} {units[power - 1]})" if power else "")


def _help(needed: int, memories: Mapping[str, int]) -> str:
    room = [name for name, held in memories.items() if held >= needed]
    return f"smaller sizes, or a chip with more: {', '.join(room)}" if room else "smaller sizes: no known chip has as much"
