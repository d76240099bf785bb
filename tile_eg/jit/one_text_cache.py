"""Kernels compiled for all sizes on disk: a second process takes them from there.

The entry of a `.tile` kernel has a name that follows from its text. What a Python kernel is at all sizes has no text: its entry
has the sizes at which the kernel was built when it was compiled, each with a digest of what it was there. It serves where the
kernel is the same at all of them, as the search saw nothing else of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tile_eg.chips import load_chip
from tile_eg.disk_cache import recall, remember
from tile_eg.errors import TileError
from tile_eg.ir.open_kernel import NoBlocks
from tile_eg.ir.plain import from_plain, to_plain
from tile_eg.jit.process_cache import cache
from tile_eg.search.any_size import AnySize, Picked, Variant
from tile_eg.search.kernel_cache import MOST, exact_text, name_of
from tile_eg.search.one_text import NOWHERE, NoText, OneText, Points
from tile_eg.search.options import SearchOptions

PROBES = (64, 307, 1009)
"""Sizes at which a kernel without a text is looked at for the name of its entry."""
Built = tuple[Mapping[str, Any], str]


class CachedOneText(OneText):
    """`OneText`, whose answers are kept on disk. `text` are plain values from which the kernel follows at all sizes (None: it has
    none)."""

    def __init__(
        self, build: Callable[[Mapping[str, Any]], Any], names: tuple[str, ...], chip: str, options: SearchOptions,
        priced: Points = NOWHERE, text: object = None,
    ) -> None:  # fmt: skip
        super().__init__(self._built, names, chip, options, priced)
        self.built, self.source = build, text
        self.seen: dict[tuple[tuple[str, Any], ...], str] | None = None
        self.cached = True

    def _built(self, sizes: Mapping[str, Any]) -> Any:
        """The kernel at some sizes, noted where that is asked for."""
        key = tuple(sorted(sizes.items()))
        try:
            kernel = self.built(sizes)
        except (TileError, NoBlocks) as fault:
            if self.seen is not None:
                self.seen[key] = _failed(fault)
            raise
        if self.seen is not None:
            self.seen[key] = _digest(kernel)
        return kernel

    def opened(self, others: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, str]]:
        def made() -> Any:
            names, why = super(CachedOneText, self).opened(others)
            return [list(names), why]

        names, why = self._kept("which sizes", others, made, lambda x: x, lambda x: x)
        return tuple(names), dict(why)

    def compiled(self, names: tuple[str, ...], fixed: Mapping[str, Any]) -> AnySize | NoText:
        return self._kept("text", (names, fixed), lambda: super(CachedOneText, self).compiled(names, fixed), _to_json, _of_json)  # type: ignore[no-any-return]

    def _kept(self, what: str, asked: Any, make: Callable[[], Any], to: Callable[[Any], Any], of: Callable[[Any], Any]) -> Any:
        """What was kept, or else what `make` gives, kept for later where `to` has a form for it."""
        name = self._name(what, asked)
        held = self._recalled(name) if name else None
        if held is not None:
            with suppress(KeyError, TypeError, ValueError, TileError):
                return of(held)
        before, self.seen = self.seen, {} if self.source is None else None
        try:
            found = make()
            seen = self.seen or {}
        finally:
            self.seen = before if before is None else before | (self.seen or {})
        if name and (plain := to(found)) is not None and "" not in seen.values():
            remember(name, json.dumps({"seen": [[to_plain(dict(k)), v] for k, v in seen.items()], "found": plain}).encode(), MOST)
        return found

    def _name(self, what: str, asked: Any) -> str | None:
        if not (self.cached and cache.enabled):
            return None
        points = tuple(sorted((n, tuple(v)) for n, v in self.priced.items()))
        others = asked if isinstance(asked, Mapping) else asked[1]
        kernel = self.source or tuple(self._looked_at({**dict.fromkeys(self.names, n), **others}) for n in PROBES)
        return name_of((what, kernel, self.names, str(asked), points), self.chip, self.options)

    def _looked_at(self, sizes: Mapping[str, Any]) -> str:
        """What a kernel is at some sizes."""
        try:
            return _digest(self.built(sizes))
        except (TileError, NoBlocks) as fault:
            return _failed(fault)

    def _recalled(self, name: str) -> Any:
        """What an entry holds, where the kernel is what it was at all sizes at which it was looked at."""
        data = recall(name)
        try:
            held: Any = json.loads(data) if data else None
            same = held is not None and all(self._looked_at(from_plain(sizes)) == digest for sizes, digest in held["seen"])
            return held["found"] if same else None
        except (ValueError, TypeError, KeyError):
            return None


def _digest(kernel: object) -> str:
    """What tells a kernel from others; nothing where it has no exact text."""
    try:
        return hashlib.sha256(exact_text(kernel).encode()).hexdigest()[:16]
    except TypeError:
        return ""


def _failed(fault: TileError | NoBlocks) -> str:
    return fault.message if isinstance(fault, TileError) else "no blocks"


def _to_json(found: AnySize | NoText) -> Any:
    """None for what is not kept: a fault of tile_eg."""
    if isinstance(found, NoText):
        return None if found.fault else {"why": str(found), "told": found.told}
    picked = found.picked
    try:
        variants = to_plain(tuple((v.program, v.trips) for v in found.variants))
        return {"variants": variants, "picked": to_plain((picked.points, picked.picks, picked.first)),
                "kernel": to_plain(found.kernel), "chip": found.chip.name, "told": to_plain(found.told)}  # fmt: skip
    except TypeError:
        return None


def _of_json(held: Any) -> AnySize | NoText:
    if "why" in held:
        missing = NoText(held["why"])
        missing.told = bool(held["told"])
        return missing
    variants = tuple(Variant(program, trips) for program, trips in from_plain(held["variants"]))
    picked, told = Picked(*from_plain(held["picked"])), from_plain(held["told"])
    return AnySize(variants[0].program, load_chip(held["chip"]), from_plain(held["kernel"]), variants, picked, (), told)
