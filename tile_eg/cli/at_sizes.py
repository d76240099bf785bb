"""`tile-eg explain --at`: the times of a kernel at several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile_eg.cli.kept import Wanted
from tile_eg.cli.options import check_clash
from tile_eg.errors import TileError
from tile_eg.search.compiler import Lowered


def times_at(wanted: Wanted, several: Sequence[Mapping[str, int]]) -> str:
    """The table of times, and at which sizes the same schedule is chosen. TileError where nothing is chosen."""
    from tile_eg.report.at_sizes import at_sizes
    from tile_eg.report.decisions import summary

    check_clash(wanted.sizes, several[0])
    found = []
    for more in several:
        planned = replace(wanted, sizes={**wanted.sizes, **more}).compiled()
        if not isinstance(planned, Lowered):
            help = "--schedule search takes a kernel without its flags and scopes"
            raise TileError(f"'{wanted.file}' is a program, or kept as it is written: nothing is chosen at a size", help=help)
        found.append((dict(more), planned.cost, summary(planned.candidates[0].schedule)))
    return at_sizes(found)
