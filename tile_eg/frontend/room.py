"""Whether the tensors of a kernel fit the memory of a chip, its HBM."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_eg.chips import Chip, known_chips, load_chip
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel, Tensor


def bytes_of(tensor: Tensor) -> int:
    return prod(tensor.shape) * tensor.dtype.bytes


def check_room(kernel: Kernel, chip: Chip) -> None:
    """Raises TileError where the tensors together need more bytes than the chip's HBM has."""
    sizes = {t.name: bytes_of(t) for t in kernel.tensors}
    needed = sum(sizes.values())
    if needed <= chip.hbm_bytes:
        return
    largest = max(kernel.tensors, key=bytes_of)
    if sizes[largest.name] > chip.hbm_bytes:
        what = f"`{largest.name}` needs {sized(sizes[largest.name])}"
    else:
        what = f"the tensors need {sized(needed)}, of them `{largest.name}` {sized(sizes[largest.name])}"
    error = TileError(f"{what}, and the HBM of {chip.name} has {sized(chip.hbm_bytes)}", largest.span, help=_help(needed, chip))
    error.source = kernel.source
    raise error


def sized(count: int) -> str:
    """Bytes as a person reads them: 8589934592 bytes (8 GiB)."""
    units: Sequence[str] = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min((count.bit_length() - 1) // 10, len(units)) if count else 0
    return f"{count} bytes" + (f" ({count / 1024**power:.4g} {units[power - 1]})" if power else "")


def _help(needed: int, chip: Chip) -> str:
    larger = (load_chip(name) for name in known_chips(None))
    room = [c.name for c in larger if c.hbm_bytes >= needed]
    return f"smaller sizes, or a chip with more: {', '.join(room)}" if room else "smaller sizes: no known chip has as much"
