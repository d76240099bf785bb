"""TileLang's `cache`: compiled kernels that are kept, in the process and on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tile_eg.disk_cache import CACHE_VARIABLE, cache_directory
from tile_eg.jit import CompiledKernel, compile
from tile_eg.jit.any_size import AnySizeKernel
from tile_eg.jit.process_cache import cache, disable_cache, enable_cache

__all__ = ["cached", "clear_cache", "disable_cache", "enable_cache", "get_cache_dir", "set_cache_dir"]


def cached(func: Any = None, out_idx: Any = None, workspace_idx: Any = None, **options: Any) -> CompiledKernel | AnySizeKernel:
    """The same as `tile_eg.compile`, which caches anyway. TileError if `func` does not compile."""
    return compile(func, out_idx=out_idx, workspace_idx=workspace_idx, **options)


def clear_cache() -> None:
    """Forgets the compiled kernels of this process; those on disk stay (`tile-eg cache --clear`)."""
    cache.clear_cache()


def get_cache_dir() -> Path:
    """The folder in which compiled kernels are kept."""
    return cache_directory()


def set_cache_dir(cache_dir: str | Path) -> None:
    """Keeps what is compiled from now on in another folder, which is made if it is missing."""
    os.environ[CACHE_VARIABLE] = str(cache_dir)
