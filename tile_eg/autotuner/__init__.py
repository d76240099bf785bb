"""TileLang's `autotuner`: the best of an author's configurations, by measured time on an NPU, elsewhere by predicted time."""

from __future__ import annotations

from typing import Any

from tile_eg.autotuner.tuned import autotune, set_autotune_inputs
from tile_eg.autotuner.tuner import AutoTuner
from tile_eg.errors import TileError

__all__ = ["AutoTuner", "autotune", "set_autotune_inputs"]


def __getattr__(name: str) -> Any:
    if name == "get_autotune_inputs":
        help = "put @autotune(configs=[...]) above @tile_eg.jit"
        raise TileError(f"autotuner.{name} is not here: the best configuration is found when a kernel is called", help=help)
    raise AttributeError(f"module 'tile_eg.autotuner' has no attribute {name!r}")
