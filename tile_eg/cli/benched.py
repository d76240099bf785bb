"""What a row of `tile-eg bench --csv` was measured of: its kernel, sizes, chip and search, by the command in the row."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import Any

import typer

from tile_eg.cli import options, sources
from tile_eg.cli.bench import bench
from tile_eg.cli.search import given_search, searching
from tile_eg.errors import TileError
from tile_eg.ops.records import record
from tile_eg.search import SearchOptions
from tile_eg.search.compiler import Planned


@record
class Benched:
    """A kernel's file with what was given for it. `chip` is None for the default one."""

    file: Path
    sizes: dict[str, int | str]
    chip: str | None
    search: SearchOptions

    def compiled(self) -> Planned:
        """The kernel, compiled as it was for the measurement."""
        return sources.compiled(self.file, self.sizes, self.chip, self.search)


def benched(source: str) -> Benched:
    """What stands in a row's column `source`. TileError where that begins with no command of `tile-eg bench`, or a wrong one."""
    words = shlex.split(source.partition("; tile_eg")[0])
    if words[:2] != ["tile-eg", "bench"]:
        raise TileError(f"no command of `tile-eg bench`: {source}")
    try:
        given = _command().make_context("tile-eg bench", words[2:]).params
    except options.UsageError as error:
        raise options.unreadable(error) from None
    given["rules"] = [Path(file) for file in given["rules"] or ()]
    shapes = (given["shapes"] or [""])[0]
    sizes = options.sizes(shapes.split(","), "--shapes") if shapes else {}
    return Benched(Path(given["file"]), sizes, given["chip"], given_search(given))


@cache
def _command() -> Any:
    app = typer.Typer()
    app.command()(searching(bench))
    return typer.main.get_command(app)
