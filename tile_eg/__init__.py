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
    from tile_eg.errors import TileError
    from tile_eg.jit import jit, load
    from tile_eg.jit.process_cache import cache, disable_cache, enable_cache
    from tile_eg.jit.switches import PassConfigKey
    from tile_eg.search.compiler import Lowered, lower

_HOME = {
    "jit": "tile_eg.jit",
    "load": "tile_eg.jit",
    "PassConfigKey": "tile_eg.jit.switches",
    "cache": "tile_eg.jit.process_cache",
    "disable_cache": "tile_eg.jit.process_cache",
    "enable_cache": "tile_eg.jit.process_cache",
    "lower": "tile_eg.search.compiler",
    "Lowered": "tile_eg.search.compiler",
    "TileError": "tile_eg.errors",
}
__all__ = [
    "__version__",
    "Lowered",
    "PassConfigKey",
    "TileError",
    "cache",
    "disable_cache",
    "enable_cache",
    "jit",
    "language",
    "load",
    "lower",
    "rules",
]


def __getattr__(name: str) -> Any:
    if name in ("language", "rules"):
        return import_module(f"tile_eg.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'tile_eg' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
