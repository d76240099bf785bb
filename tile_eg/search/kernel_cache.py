"""Compiled kernels on disk: the texts that a kernel became, by all that they follow from.

An entry is JSON below the cache's folder (`disk_cache`); nothing of it is ever executed. Its name is a digest of the kernel (its
text and sizes, or its tree), the chip, the options of the search with the texts of rules, and the version: tile_eg's own files
and the packages that it computes with. What others' code decides (`module:Class`, a saved model) has no name, and is not kept.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from tile_eg import kept_texts
from tile_eg.chips import OWN, load_chip
from tile_eg.disk_cache import on, remember, user_cache
from tile_eg.errors import InternalError, TileError, attempted
from tile_eg.ir.exact import exact_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program.parser import parse_program
from tile_eg.kept_texts import Texts, find
from tile_eg.search import SearchOptions
from tile_eg.search.restored import Restored

if TYPE_CHECKING:
    from tile_eg.search.result import Lowered

__all__ = ["Texts", "clear", "exact_text", "find", "held", "keep", "name_of", "restored"]

KIND, MOST = "compiled", 2000
"""How the names of entries begin, and how many stay."""


def restored(texts: Texts, kernel: Kernel) -> Restored | None:
    """The kernel's program as it was kept; None where it cannot be read."""
    found = attempted(lambda: _restored(texts, kernel))
    return None if isinstance(found, TileError) else found


def _restored(texts: Texts, kernel: Kernel) -> Restored:
    program = parse_program(texts.program)
    return Restored(program, load_chip(program.chip), kernel, texts.source)


def name_of(kernel: object, chip: str, search: SearchOptions) -> str | None:
    """The name of a kernel's entry; None where it has none, as for a chip of the user's. `kernel` is a Kernel, or plain values
    that it follows from."""
    now = kept_texts.version() if on() else None
    asked = _exact_options(search)
    if now is None or asked is None or chip.endswith(OWN):
        return None
    try:
        exact = exact_text((kernel, chip, asked))
    except TypeError:
        return None
    return f"{KIND}-{hashlib.sha256(f'{now} {exact}'.encode()).hexdigest()[:32]}"


def keep(name: str, made: Lowered) -> None:
    """Keeps a kernel that has all texts, where there is room, and no file of tile_eg has changed since this process began."""
    if kept_texts.version() is None or not on():
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
