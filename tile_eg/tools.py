"""TileLang's module tools: what it holds is of GPUs and of TileLang's own compiler. Each name is refused where it is used."""

from __future__ import annotations

from tile_eg.absent import refused

INSTEAD = {
    "Analyzer": "kernel.predicted_ms, and `tile-eg explain FILE`: what a launch takes, and what bounds it",
    "plot_layout": "nothing in its place: where a tile lies, and how, is found",
}
"""What does the work of its names here."""

__path__: list[str] = []
__getattr__ = refused(__name__, INSTEAD, "`tile-eg explain FILE` shows what was found")
