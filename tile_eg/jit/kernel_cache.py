"""Compiled kernels on disk: the texts that a kernel became, by all that they follow from.

An entry is JSON below the cache's folder (`disk_cache`); nothing of it is ever executed. Its name is a digest of the kernel (its
text and sizes, or its tree), the chip, the options of the search with the texts of rules, and the version: tile_eg's own files
and the packages that it computes with. What others' code decides (`module:Class`, a saved model) has no name, and is not kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tile_eg.chips import OWN, load_chip
from tile_eg.disk_cache import on, recall, remember, user_cache
from tile_eg.errors import TileError
from tile_eg.ir.exact import exact_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program.parser import parse_program
from tile_eg.search import SearchOptions
from tile_eg.search.planned import InternalError
from tile_eg.search.restored import Restored

if TYPE_CHECKING:

    from tile_eg.search.result import Lowered

KIND, MOST = "compiled", 2000
"""How the names of entries begin, and how many stay."""
PACKAGES = ("egglog", "ortools", "numpy", "ml_dtypes", "lark")
_BEGAN = time.time_ns()


@dataclass(frozen=True)
class Texts:
    """What a kernel became: Ascend C, host part, spec, program; and what was told when it was compiled."""

    source: str
    host: str
    spec: str
    program: str
    told: tuple[str, ...] = ()


def restored(texts: Texts, kernel: Kernel) -> Restored | None:
    """The kernel's program as it was kept; None where it cannot be read."""
    try:
        program = parse_program(texts.program)
        return Restored(program, load_chip(program.chip), kernel, texts.source)
    except TileError:
        return None


def name_of(kernel: object, chip: str, search: SearchOptions) -> str | None:
    """The name of a kernel's entry; None where it has none, as for a chip of the user's. `kernel` is a Kernel, or plain values
    that it follows from."""
    now = version() if on() else None
    asked = _exact_options(search)
    if now is None or asked is None or chip.endswith(OWN):
        return None
    try:
        exact = exact_text((kernel, chip, asked))
    except TypeError:
        return None
    return f"{KIND}-{hashlib.sha256(f'{now} {exact}'.encode()).hexdigest()[:32]}"


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


def keep(name: str, made: Lowered) -> None:
    """Keeps a kernel that has all texts, where there is room, and no file of tile_eg has changed since this process began."""
    if version() is None or not on():
        return
    with suppress(TileError, InternalError):
        texts = Texts(made.source, made.host, made.spec, str(made.program), made.messages)
        remember(name, json.dumps(asdict(texts)).encode(), MOST)


def held() -> tuple[Path, int, int]:
    """The cache's folder, and how many kernels are kept in how many bytes."""
    entries = _entries()
    return user_cache().folder, len(entries), sum(f.stat().st_size for e in entries for f in e.iterdir())


def clear() -> int:
    """Removes all entries; how many there were."""
    entries = _entries()
    for entry in entries:
        shutil.rmtree(entry, ignore_errors=True)
    return len(entries)


def _entries() -> list[Path]:
    return sorted(user_cache().folder.glob(f"{KIND}-*"))


def version() -> str | None:
    """A digest of tile_eg's own files, by their sizes and times, and of the packages that it computes with.

    None where one of its files has changed since this process began (what it runs is then not what stands there), and where
    they cannot be read.
    """
    try:
        files = list(_own_files(str(Path(__file__).parents[1])))
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
    yield from sorted(n for n in os.listdir(Path(spec.origin).parent.parent) if n.startswith(f"{name}-"))


def _exact_options(search: SearchOptions) -> tuple | None:
    """The options as plain values; None where others' code, or a file, takes part."""
    if search.cost_model is not None:
        from tile_eg.cost_models import MODELS

        if search.cost_model not in MODELS:
            return None
    if search.extractor is not None:
        from tile_eg.extract import EXTRACTORS

        if search.extractor not in EXTRACTORS:
            return None
    own = tuple((t.name, t.source, t.text, tuple((r.name, r.law, r.ruleset) for r in t.rules)) for t in search.rules)
    given = {f.name: getattr(search, f.name) for f in fields(search) if f.compare}
    return tuple(sorted((given | {"rules": own, "without": tuple(sorted(search.without))}).items()))
