"""A schedule that tuning found before, taken instead of a search: for a kernel by its chip and sizes, where it still fits."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_eg.chips import Chip, load_chip
from tile_eg.errors import TileError
from tile_eg.ir.arrays import signature
from tile_eg.ir.exact import exact_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.search import tuned_file
from tile_eg.search.options import SearchOptions
from tile_eg.search.tuned_file import STRICT, Entry, Pairs

if TYPE_CHECKING:
    from tile_eg.search.result import Lowered

_PLAIN = SearchOptions()


def settled(kernel: object, chip: str, search: SearchOptions) -> tuple[SearchOptions, tuple[str, ...]]:
    """The options with the schedule that was tuned for this kernel, if there is one; and lines that say so, or why not.

    TileError where the file beside the kernel is none of ours, or broken. Nothing is looked for twice, with `untuned`, and where
    the search is the user's own: with an extractor, a cost model, numbers of schedules or rows.
    """
    own = search.extractor or search.cost_model or search.k or search.fuel
    if own or search.untuned or search.tuned or not isinstance(kernel, Kernel) or not kernel.file:
        return replace(search, untuned=True), ()
    path = tuned_file.path_of(kernel.file)
    if not path.exists():
        return replace(search, untuned=True), ()
    entry, why = _entry_for(kernel, load_chip(chip).name, search, _entries(path))
    if entry is None:
        told = f"note: {path} is not used: {why}\nhelp: tune again: tile-eg tune {kernel.file}; --untuned leaves this out"
        return replace(search, untuned=True), (told,) if why else ()
    return replace(search, tuned=entry, untuned=True), (_told(entry, path),)


def _told(entry: Entry, path: Path) -> str:
    what = f"{entry.microseconds:.4g} us {entry.by}"
    return f"note: the schedule of {entry.kernel} is the one that tuning found for {entry.chip} ({path}: {what})"


def _entries(path: Path) -> tuple[Entry, ...]:
    found = path.stat()
    return _read(path, found.st_mtime_ns, found.st_size, found.st_ino)


@lru_cache(maxsize=16)
def _read(path: Path, *_: int) -> tuple[Entry, ...]:
    return tuned_file.read(path)


def _entry_for(kernel: Kernel, chip: str, search: SearchOptions, entries: tuple[Entry, ...]) -> tuple[Entry | None, str]:
    """The entry for this kernel; or why the one that was for it is not any more: empty where there was none."""
    asked = (kernel.name, chip, signature(kernel.tensors), open_of(kernel), strict(search))
    for e in entries:
        if (e.kernel, e.chip, e.tensors, e.open, e.strict) != asked:
            continue
        if e.meaning != meaning_of(kernel):
            if e.source != source_of(kernel):
                return None, f"it was tuned for another text of {kernel.name}"
            continue  # the same text at other block sizes
        if e.rules != rules_of(search):
            return None, f"it was tuned for {kernel.name} with other rules (--rules)"
        if e.made_with != made_with():
            return None, f"it was tuned with another tile_eg: {_unlike(e.made_with, made_with())}"
        return e, ""
    return None, ""


def open_of(kernel: Kernel) -> tuple[str, ...]:
    """The sizes that are left to the search."""
    return kernel.open if isinstance(kernel, OpenKernel) else ()


def meaning_of(kernel: Kernel) -> str:
    """A digest of what the kernel says, wherever its words stand."""
    return _digest(exact_text(kernel, compared=True))


def source_of(kernel: Kernel) -> str:
    """A digest of the kernel's text."""
    return _digest(kernel.source)


def rules_of(search: SearchOptions) -> str:
    """A digest of the user's own rules; empty where there are none."""
    return _digest(repr([(t.name, t.source or t.text) for t in search.rules])) if search.rules else ""


def made_with() -> Pairs:
    """This tile_eg: its version, the digest of its files, the packages that it computes with."""
    from tile_eg.state import state

    own = state()
    return (("version", own.version), ("files", own.files[:16]), *own.packages)


def _unlike(then: Pairs, now: Pairs) -> str:
    """What of two of `made_with` differs."""
    old, new = dict(then), dict(now)
    return ", ".join(f"{n} {old.get(n, 'missing')}, now {new.get(n, 'missing')}" for n in old | new if old.get(n) != new.get(n))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def strict(search: SearchOptions) -> Pairs:
    """The options that decide what may be computed, those that are set."""
    return tuple((n, v) for n, v in options_of(search) if n in STRICT)


def options_of(search: SearchOptions) -> Pairs:
    """The options of a search that are not the usual ones, as plain values; rules have a digest of their own."""
    names = (*STRICT, "effort", "fuel", "k", "extractor", "cost_model")
    given = ((n, getattr(search, n)) for n in names)
    return tuple((n, tuple(sorted(v)) if isinstance(v, frozenset) else v) for n, v in given if v != getattr(_PLAIN, n))


def search_of(entry: Entry, asked: SearchOptions) -> SearchOptions:
    """The options by which an entry was found, with the rules that are asked for, which are the same."""
    given: dict[str, Any] = dict(entry.options)
    without = frozenset(given.pop("without", ()))
    return SearchOptions(**given, rules=asked.rules, without=without, untuned=True)


def as_tuned(kernel: Kernel, chip: Chip, asked: SearchOptions) -> Lowered:
    """The kernel with the schedule of `asked.tuned`. TileError where that is none of its candidates: somebody wrote it."""
    from tile_eg.cost_models import roles
    from tile_eg.search.driver import compiled
    from tile_eg.search.every import Every, digest_of

    entry = asked.tuned
    assert entry is not None
    search = search_of(entry, asked)
    every = Every(at_sizes(kernel, entry.sizes), chip, search)
    for found in every:
        if found.digest == entry.program:
            return every.chosen(found)
    own = compiled(kernel, chip, search, roles(search.cost_model, chip).rank)
    if digest_of(str(own.program)) == entry.program:
        return own
    message = f"no candidate of {kernel.name} is the one that {tuned_file.path_of(kernel.file)} names ({entry.program})"
    raise TileError(message, help=f"tune again: tile-eg tune {kernel.file}; or leave it aside: --untuned, in Python untuned=True")


def at_sizes(kernel: Kernel, sizes: Pairs) -> Kernel:
    """The kernel with numbers for the sizes that were left open."""
    return kernel.build(dict(sizes)) if isinstance(kernel, OpenKernel) else kernel
