"""Kernels with flags, barriers and scopes read without them: their statements in an order that means the same."""

from tile_eg.frontend.sequential.reader import sequential_kernel

__all__ = ["sequential_kernel"]
