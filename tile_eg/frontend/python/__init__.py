"""Kernels in Python, in TileLang's words: read from the source of a function, which is not run."""

from tile_eg.frontend.python.function import Argument, arguments_of, kernel_of

__all__ = ["Argument", "arguments_of", "kernel_of"]
