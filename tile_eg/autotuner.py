"""TileLang's `autotuner`: the best of an author's configurations, by predicted time."""

from tile_eg.jit.tuning import autotune

__all__ = ["autotune"]
