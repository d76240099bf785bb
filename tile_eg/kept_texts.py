"""What a kernel became, as it lies on disk: its texts by the name of their entry, and the version that all entries are of.

A process that asks by name imports nothing but this: `search/kernel_cache.py` says which name a kernel has.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tile_eg.disk_cache import recall
from tile_eg.ops.records import record

PACKAGES = ("egglog", "ortools", "numpy", "ml_dtypes", "lark")
_BEGAN = time.time_ns()


@record
class Texts:
    """What a kernel became: Ascend C, host part, spec, program; and what was told when it was compiled."""

    source: str
    host: str
    spec: str
    program: str
    told: tuple[str, ...] = ()


def find(name: str) -> Texts | None:
    """The texts of an entry; None where there is none, or it cannot be read."""
    data = recall(name)
    if data is None:
        return None
    try:
        held = json.loads(data)
        return Texts(**held | {"told": tuple(held["told"])})
    except (ValueError, TypeError, KeyError):
        return None


def version() -> str | None:
    """A digest of tile_eg's own files, by their sizes and times, and of the packages that it computes with.

    None where one of its files has changed since this process began (what it runs is then not what stands there), and where
    they cannot be read.
    """
    try:
        files = list(_own_files(str(Path(__file__).parent)))
        packages = [part for name in PACKAGES for part in _package(name)]
    except (OSError, ImportError, ValueError):  # the last: a module that was put into sys.modules by hand
        return None
    if any(max(stat.st_mtime_ns, stat.st_ctime_ns) > _BEGAN for _, stat in files):
        return None
    times = sorted(f"{path} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns}" for path, s in files)
    parts = (*times, *packages, sys.version)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _own_files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    for entry in os.scandir(folder):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _own_files(entry.path)
        elif entry.name.endswith((".py", ".egg", ".toml", ".lark")):
            yield entry.path, entry.stat()


def _package(name: str) -> Iterator[str]:
    """What tells a release of a package from another, found without importing it."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return
    stat = os.stat(spec.origin)
    yield f"{spec.origin} {stat.st_size} {stat.st_mtime_ns}"
    yield from sorted(n for n in _names_in(str(Path(spec.origin).parent.parent)) if n.startswith(f"{name}-"))


@cache
def _names_in(folder: str) -> list[str]:
    return os.listdir(folder)
