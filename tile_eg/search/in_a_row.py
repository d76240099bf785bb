"""The texts of several kernels that one function launches, one behind the other."""

from __future__ import annotations

from tile_eg.emit.in_a_row import host_in_a_row, in_one_file

__all__ = ["host_in_a_row", "in_one_file"]
