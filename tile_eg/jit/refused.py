"""Names of TileLang's host side that have no counterpart here: asking for one says what does its work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tile_eg.errors import TileError


def names_of(module: str, ways: Mapping[str, str], other: str = "") -> Callable[[str], Any]:
    """A module's `__getattr__`: TileError for the names in `ways`, and for any other name where `other` says the way out."""

    def missing(name: str) -> Any:
        if name.startswith("__") or not (way := ways.get(name, other)):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise TileError(f"{module}.{name} is not here", help=way)

    return missing
