"""TileLang's module contrib: what it holds is of GPUs and of TileLang's own compiler. Each name is refused where it is used."""

from __future__ import annotations

from tile_eg.absent import refused

INSTEAD = {
    "nvcc": "nothing in its place: kernels become Ascend C, which kernel.get_kernel_source() shows",
    "hipcc": "nothing in its place: kernels become Ascend C, which kernel.get_kernel_source() shows",
    "cc": "`tile-eg build FILE -o DIR`: a directory that CANN builds",
    "dlpack": "torch tensors and NumPy arrays, which a kernel takes as they are",
}
"""What does the work of its names here."""

__path__: list[str] = []
__getattr__ = refused(__name__, INSTEAD, "`tile-eg build FILE -o DIR`: a directory that CANN builds")
