"""TileLang's `profiler`: predicted times, inputs drawn for a kernel, and comparisons."""

from tile_eg.jit.profiling import Profiler, TensorSupplyType, do_bench

__all__ = ["Profiler", "TensorSupplyType", "do_bench"]
