"""Kernels in Python, in TileLang's words: read from the source of a function, which is not run.

A function that returns expressions of whole tensors is run, on values that note what is done with them (`tensors.py`).
"""

from tile_eg.frontend.python.eager import Eager, Launched, eager
from tile_eg.frontend.python.function import Argument, arguments_of, kernel_of, read
from tile_eg.frontend.python.global_tensors import with_global_tensors
from tile_eg.frontend.python.in_a_row import launches
from tile_eg.frontend.python.returned import output_names, returns_tensors, takes_tensors

__all__ = [
    "Argument", "Eager", "Launched", "arguments_of", "eager", "kernel_of", "launches", "output_names", "read", "returns_tensors",
    "takes_tensors", "with_global_tensors",
]  # fmt: skip
