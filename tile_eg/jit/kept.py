"""Kernels that are kept as they are written, with what the switches ask for; and the same ones without it, to be searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError, did_you_mean
from tile_eg.jit.switches import finds_meetings, kept_barriers, kept_planning, two_streams

if TYPE_CHECKING:
    from tile_eg.ir.kept import KeptKernel
    from tile_eg.ir.kernel import Kernel
    from tile_eg.language.kernels import PrimFunc

SEARCH = "search"
"""What `schedule` says of a kernel that is searched, whatever its author decided."""


def check_schedule(schedule: str | None) -> None:
    """TileError for a word that says nothing of how a kernel is scheduled."""
    if schedule not in (None, SEARCH):
        help = did_you_mean(str(schedule), [SEARCH]) or "leave it out: a kernel with flags or scopes is kept as it is written"
        raise TileError(f"schedule is {SEARCH!r}, or left out, not {schedule!r}", help=help)


def searched_at(function: PrimFunc, configs: Mapping[Any, Any] | None, sizes: Mapping[str, Any]) -> Kernel:
    """The kernel of a prim_func at sizes without what its author says of its order and places."""
    from tile_eg.frontend.sequential import sequential_kernel

    return sequential_kernel(function, sizes, finds_meetings(configs))


def kept_at(function: PrimFunc, configs: Mapping[Any, Any] | None, sizes: Mapping[str, Any]) -> KeptKernel:
    """The kernel of a prim_func as its author wrote it, at sizes, and what the switches ask for: barriers, shared memory, flags
    between cores where it has none."""
    from tile_eg.frontend.expert.kernel import kept_kernel

    barriers = kept_barriers(configs)
    kernel = kept_kernel(function, barriers, sizes)
    if finds_meetings(configs) and not kernel.meets() and kernel.handed_over():
        kernel = kept_kernel(function, barriers, sizes, meet=True, streams=two_streams(configs))
    return replace(kernel, planned=kept_planning(configs))
