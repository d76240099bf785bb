"""TileLang's module tools: what it holds is of GPUs and of TileLang's own compiler. Each name is refused where it is used."""

from __future__ import annotations

from typing import Any

from tile_eg.errors import NotHere

INSTEAD = {
    "Analyzer": "kernel.predicted_ms, and `tile-eg explain FILE`: what a launch takes, and what bounds it",
    "plot_layout": "nothing in its place: where a tile lies, and how, is found",
}
"""What does the work of its names here."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return NotHere(f"tile_eg.tools.{name}", INSTEAD.get(name, "`tile-eg explain FILE` shows what was found"))
