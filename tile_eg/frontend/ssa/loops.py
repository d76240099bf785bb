"""Element loops exchanged for other statements, wherever they stand in a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tile_eg.ir import kernel as kn

Loop = kn.For | kn.Parallel
Buffers = dict[str, kn.Alloc]


def with_loops(kernel: kn.Kernel, instead: Callable[[Loop, Buffers], Iterable[kn.Stmt] | None]) -> kn.Kernel:
    """The kernel with what `instead` gives in the place of a loop; None: it stays, and the loops in it are looked at.

    `instead` gets the buffers that are declared above the loop, by name, and may add its own.
    """
    buffers: Buffers = {}

    def of(s: kn.Stmt) -> Iterable[kn.Stmt] | None:
        match s:
            case kn.Alloc():
                buffers[s.name] = s
            case kn.For() | kn.Parallel():
                return instead(s, buffers)
        return None

    return replace(kernel, body=kn.exchanged(kernel.body, of))
