"""Tuning: the search's own candidates, each checked and then timed; the fastest is used from then on (`search/tuned.py`)."""

from tile_eg.tuning.result import Tuning
from tile_eg.tuning.session import Asked, Watch, tune

__all__ = ["Asked", "Tuning", "Watch", "tune"]
