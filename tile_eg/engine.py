"""TileLang's `engine`: a kernel's texts without a call of it."""

from __future__ import annotations

from typing import Any

from tile_eg.absent import refused
from tile_eg.jit import CompiledKernel, compile
from tile_eg.jit.any_size import AnySizeKernel

__path__: list[str] = []
__getattr__ = refused(__name__, {}, "tile_eg.lower(function) gives a kernel's texts; what happens on the way is found")


def lower(func: Any, target: Any = "auto", **options: Any) -> CompiledKernel | AnySizeKernel:
    """The compiled kernel of a function under `@T.prim_func`: `.kernel_source`, `.host_source`, `.params`.

    `options` are those of `tile_eg.jit`. TileError where the kernel does not compile.
    """
    return compile(func, target=target, **options)
