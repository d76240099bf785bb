"""TileLang's module contrib: what it holds is of GPUs and of TileLang's own compiler. Each name is refused where it is used."""

from __future__ import annotations

from typing import Any

from tile_eg.errors import NotHere

INSTEAD = {
    "nvcc": "nothing in its place: kernels become Ascend C, which kernel.get_kernel_source() shows",
    "hipcc": "nothing in its place: kernels become Ascend C, which kernel.get_kernel_source() shows",
    "cc": "`tile-eg build FILE -o DIR`: a directory that CANN builds",
    "dlpack": "torch tensors and NumPy arrays, which a kernel takes as they are",
}
"""What does the work of its names here."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return NotHere(f"tile_eg.contrib.{name}", INSTEAD.get(name, "`tile-eg build FILE -o DIR`: a directory that CANN builds"))
