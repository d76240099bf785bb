"""A kernel as values: single-assignment terms and folds."""

from tile_eg.frontend.ssa.converter import to_values

__all__ = ["to_values"]
