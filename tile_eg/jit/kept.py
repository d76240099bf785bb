"""Kernels that are kept as they are written, with what the switches ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_eg.jit.switches import finds_meetings, kept_barriers, kept_planning, two_streams

if TYPE_CHECKING:
    from tile_eg.ir.kept import KeptKernel
    from tile_eg.language.kernels import PrimFunc


def kept_at(function: PrimFunc, configs: Mapping[Any, Any] | None, sizes: Mapping[str, Any]) -> KeptKernel:
    """The kernel of a prim_func as its author wrote it, at sizes, and what the switches ask for: barriers, shared memory, flags
    between cores where it has none."""
    from tile_eg.frontend.expert import kept_kernel

    barriers = kept_barriers(configs)
    kernel = kept_kernel(function, barriers, sizes)
    if finds_meetings(configs) and not kernel.meets() and kernel.handed_over():
        kernel = kept_kernel(function, barriers, sizes, meet=True, streams=two_streams(configs))
    return replace(kernel, planned=kept_planning(configs))
