"""A kernel as values: single-assignment terms and folds."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile_eg.frontend.ssa.conversion import to_values

__all__ = ["to_values"]


def __getattr__(name: str) -> object:
    """`to_values`, which needs NumPy, is imported when it is first asked for: readers of a source take positions alone."""
    if name != "to_values":
        raise AttributeError(f"module 'tile_eg.frontend.ssa' has no attribute {name!r}")
    return import_module("tile_eg.frontend.ssa.conversion").to_values
