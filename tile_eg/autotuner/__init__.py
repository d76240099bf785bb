"""TileLang's `autotuner`: the best of an author's configurations, by predicted time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tile_eg.autotuner.tuned import autotune
from tile_eg.errors import TileError

__all__ = ["autotune", "set_autotune_inputs"]


@contextmanager
def set_autotune_inputs(*inputs: Any) -> Iterator[None]:
    """The arrays on which configurations are compared: predicted times do not depend on them, so that this changes nothing."""
    yield


def __getattr__(name: str) -> Any:
    if name in ("AutoTuner", "get_autotune_inputs"):
        help = "put @autotune(configs=[...]) above @tile_eg.jit"
        raise TileError(f"autotuner.{name} is not here: the best configuration is found when a kernel is called", help=help)
    raise AttributeError(f"module 'tile_eg.autotuner' has no attribute {name!r}")
