"""Lowered kernels, kept while the process lives; what a call needs is also on disk (`kernel_cache`), for the next process."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileWarning, rendered
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.search import SearchOptions, search_options
from tile_eg.search.any_order import refuse_any_order_in

if TYPE_CHECKING:
    from tile_eg.search.compiler import Lowered
    from tile_eg.search.kernel_cache import Restored


def asked(kernel: Kernel | KeptKernel, chip: str, options: Mapping[str, Any]) -> tuple[Kernel | KeptKernel, str, SearchOptions]:
    """What a cache is asked for: the options with the schedule that was tuned for the kernel, if there is one, which is told."""
    from tile_eg.jit.told import levels
    from tile_eg.search.tuned import settled

    search, told = settled(kernel, chip, search_options(**options))
    for line in told:
        warnings.warn(line, TileWarning, stacklevel=levels())
    return kernel, chip, search


@dataclass
class Cache:
    """Lowered kernels of this process, by kernel, chip and the options of the search."""

    entries: dict[tuple[Kernel | KeptKernel, str, SearchOptions], Lowered] = field(default_factory=dict)
    enabled: bool = True
    restored: dict[tuple[Kernel | KeptKernel, str, SearchOptions], Restored] = field(default_factory=dict)

    def clear_cache(self) -> None:
        self.entries.clear()
        self.restored.clear()

    def planned(self, kernel: Kernel | KeptKernel, chip: str, search: SearchOptions) -> Lowered | Restored:
        """The program and the text of a kernel: of this process, or of one before it (`kernel_cache`); else it is compiled.

        A kernel that something is told of is compiled, which tells it.
        """
        from tile_eg.search import kernel_cache

        if isinstance(kernel, KeptKernel):  # quick to make, and its findings need its source
            return self.lowered(kernel, chip, search)
        asked = kernel, chip, search
        held = self.entries.get(asked) or self.restored.get(asked) if self.enabled else None
        name = kernel_cache.name_of(*asked) if self.enabled and held is None else None
        texts = kernel_cache.find(name) if name else None
        if texts and not texts.told:
            held = kernel_cache.restored(texts, kernel)
        if isinstance(held, kernel_cache.Restored):
            self.restored[asked] = held
        if held is not None:
            return held
        made = self.lowered(*asked)
        if name and not texts:
            kernel_cache.keep(name, made)
        return made

    def lowered(self, kernel: Kernel | KeptKernel, chip: str, search: SearchOptions) -> Lowered:
        """The lowered form of a kernel, from the cache where it is there."""
        from tile_eg.search.compiler import lower
        from tile_eg.search.kept import planned_kept

        found: Any = self.entries.get((kernel, chip, search)) if self.enabled else None
        if found is None:
            found = planned_kept(kernel, chip) if isinstance(kernel, KeptKernel) else lower(kernel, chip, search=search)
            if search.deterministic and isinstance(kernel, KeptKernel):
                refuse_any_order_in(found.program, kernel.source)
            _warn(found)
            if self.enabled:
                self.entries[kernel, chip, search] = found
        return found


def _warn(lowered: Lowered) -> None:
    """Tells the notes on a kernel as warnings at their lines."""
    for note in lowered.notes:
        file, line = (note.span.file, note.span.line) if note.span else (lowered.kernel.file or "tile_eg", 1)
        warnings.warn_explicit(rendered(note, lowered.kernel.source), TileWarning, file, line)


cache = Cache()


def enable_cache() -> None:
    """Keeps compiled kernels (the default)."""
    cache.enabled = True


def disable_cache() -> None:
    """Compiles a kernel again at each call."""
    cache.enabled = False
