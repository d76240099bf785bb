"""tile_eg: a compiler for tile kernels on Ascend NPUs whose scheduling decisions are rewrite rules in an e-graph.

    gemm = tile_eg.load("examples/gemm.tile")      # or a function under @tile_eg.jit
    c = gemm(a, b)                                 # NumPy arrays
    low = gemm.compile(M=512, N=512, K=512)        # low.source, low.schedule, low.program, low.cost, low.memory

What stands here is imported when it is first used, so that `import tile_eg` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tile_eg.version import __version__

if TYPE_CHECKING:
    from tile_eg.autotuner.tuned import autotune, tune
    from tile_eg.cache import cached, get_cache_dir, set_cache_dir
    from tile_eg.errors import TileError
    from tile_eg.jit import CompiledKernel as JITKernel
    from tile_eg.jit import compile, jit, load
    from tile_eg.jit.process_cache import disable_cache, enable_cache
    from tile_eg.jit.profiling import Profiler, TensorSupplyType
    from tile_eg.jit.switches import PassConfigKey, set_log_level
    from tile_eg.language.data_type import DataType
    from tile_eg.math import cdiv, next_power_of_2
    from tile_eg.search.compiler import Lowered, lower

_HOME = {
    "jit": "tile_eg.jit",
    "compile": "tile_eg.jit",
    "autotune": "tile_eg.autotuner.tuned",
    "tune": "tile_eg.autotuner.tuned",
    "Profiler": "tile_eg.jit.profiling",
    "TensorSupplyType": "tile_eg.jit.profiling",
    "set_log_level": "tile_eg.jit.switches",
    "DataType": "tile_eg.language.data_type",
    "cdiv": "tile_eg.math",
    "next_power_of_2": "tile_eg.math",
    "load": "tile_eg.jit",
    "PassConfigKey": "tile_eg.jit.switches",
    "cached": "tile_eg.cache",
    "get_cache_dir": "tile_eg.cache",
    "set_cache_dir": "tile_eg.cache",
    "disable_cache": "tile_eg.jit.process_cache",
    "enable_cache": "tile_eg.jit.process_cache",
    "lower": "tile_eg.search.compiler",
    "Lowered": "tile_eg.search.compiler",
    "TileError": "tile_eg.errors",
}
_MODULES = (
    "autotuner", "cache", "carver", "contrib", "engine", "intrinsics", "language", "layout", "math", "profiler", "rules",
    "testing", "tools", "torch", "transform", "utils",
)  # fmt: skip
_NOT_HERE = {
    "tvm": "tile_eg builds on no TVM; tile_eg.DataType tells the bits of a dtype",
    "Layout": "where a tile lies, and how, is found",
    "Fragment": "where a tile lies, and how, is found",
}
"""Names of TileLang's that are not here, and what to do without them."""
__all__ = [
    "__version__",
    "DataType",
    "JITKernel",
    "Lowered",
    "PassConfigKey",
    "Profiler",
    "TensorSupplyType",
    "TileError",
    "autotune",
    "autotuner",
    "cache",
    "cached",
    "carver",
    "cdiv",
    "compile",
    "disable_cache",
    "enable_cache",
    "engine",
    "get_cache_dir",
    "intrinsics",
    "jit",
    "language",
    "load",
    "lower",
    "math",
    "next_power_of_2",
    "profiler",
    "rules",
    "set_cache_dir",
    "set_log_level",
    "transform",
    "tune",
    "utils",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"tile_eg.{name}")
    if name == "JITKernel":
        return import_module("tile_eg.jit").CompiledKernel
    if name in _NOT_HERE:
        return import_module("tile_eg.errors").NotHere(f"tile_eg.{name}", _NOT_HERE[name])
    if name not in _HOME:
        raise AttributeError(f"module 'tile_eg' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
