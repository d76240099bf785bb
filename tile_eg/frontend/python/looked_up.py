"""Kernels with indices that are read, for which the search may have no form: that shows only once they are values."""

from __future__ import annotations

from tile_eg.errors import NotSearched, TileError, attempted
from tile_eg.frontend.checks import check
from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Kernel, Region
from tile_eg.ir.values import Values


def searched(kernel: Kernel) -> Kernel | NotSearched:
    """The kernel; or why the search has no form for it, where an index is read that it does not follow and all else is right."""
    if not any(any(map(elements_in, r.starts)) for r in nodes(kernel.body) if isinstance(r, Region)):
        return kernel
    found = attempted(lambda: _values(kernel))
    told = (found, *found.others) if isinstance(found, TileError) else ()
    unknown = [e for e in told if isinstance(e, NotSearched)]
    return unknown[0] if unknown and len(unknown) == len(told) else kernel


def _values(kernel: Kernel) -> Values:
    check(kernel)
    return to_values(kernel)
