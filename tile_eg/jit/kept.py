"""Kernels that are kept as they are written, with what the switches ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_eg.errors import in_source
from tile_eg.jit.switches import check_kept, kept_barriers, kept_planning

if TYPE_CHECKING:
    from tile_eg.ir.kept import KeptKernel
    from tile_eg.language.kernels import PrimFunc


def kept_at(function: PrimFunc, configs: Mapping[Any, Any] | None, sizes: Mapping[str, Any]) -> KeptKernel:
    """The kernel of a prim_func as its author wrote it, at sizes. TileError where a switch does not suit it."""
    from tile_eg.frontend.expert import kept_kernel

    kernel = replace(kept_kernel(function, kept_barriers(configs), sizes), planned=kept_planning(configs))
    with in_source(kernel.source):
        check_kept(configs, kernel)
    return kernel
