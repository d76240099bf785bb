"""Kernels that `emit` and `run` compile once: the next process takes them from the cache on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Annotated

import typer

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.cli import again, sources
from tile_eg.cli.console import complain, show
from tile_eg.cli.options import SEARCH
from tile_eg.errors import TileError
from tile_eg.frontend.text.definitions import imported_texts
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import Program
from tile_eg.ops.records import record
from tile_eg.report.text import size
from tile_eg.search import SearchOptions, kernel_cache
from tile_eg.search.compiler import Lowered, Planned
from tile_eg.search.kernel_cache import Texts
from tile_eg.search.tuned_file import path_of

NoCache = Annotated[bool, typer.Option("--no-cache", help="Compile, even if the result is kept on disk.")]


@record
class Wanted:
    """The kernel of a file, or its program: at these sizes, for this chip (None: the default), by this search.

    `schedule` is one by its number, or "search": without what its author decided. `cached` says whether the cache may be asked.
    Sizes that are not given follow from `shapes`.
    """

    file: Path
    sizes: Mapping[str, int | str]
    chip: str | None
    search: SearchOptions
    schedule: int | str | None = None
    cached: bool = True
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def held(self) -> Kernel | Program | KeptKernel:
        """What stands in the file."""
        return sources.read(self.file, self.sizes, self.shapes, self.searched)

    @property
    def searched(self) -> bool:
        """Whether a kernel whose author decided its order is to be read without that."""
        return self.schedule == SEARCH

    @property
    def number(self) -> int | None:
        """The schedule that is asked for by its number."""
        return self.schedule if isinstance(self.schedule, int) else None

    @property
    def known(self) -> bool:
        """Whether the file has a kernel at these sizes."""
        try:
            return self.held is not None
        except TileError:
            return False

    def kept(self) -> Texts | None:
        """The texts of the kernel, where it was compiled before; what was told then is told again."""
        found = kernel_cache.find(self._name) if self._name else None
        for note in found.told if found else ():
            complain(note)
        return found

    def kept_if_known(self) -> Texts | None:
        """The same; None where the file has no kernel at these sizes, as they are some of a kernel's of any size."""
        try:
            return self.kept()
        except TileError:
            return None

    def restored(self) -> Planned | None:
        """The kernel, where it was compiled before."""
        if self._name is None or not isinstance(self.held, Kernel):
            return None
        found = self.kept()
        return kernel_cache.restored(found, self.held) if found else None

    def compiled(self) -> Planned:
        """The kernel, compiled now and kept for later."""
        planned = sources.compile_held(self.held, self.chip, self.settled, self.number)
        if self._name and isinstance(planned, Lowered) and self._is_of(planned.kernel.source):
            kernel_cache.keep(self._name, planned)
        return planned

    def _is_of(self, source: str) -> bool:
        """Whether the texts that the name was made of are those that were compiled: they may be edited meanwhile."""
        return self._text is None or (source, self._read_imports()) == (self._text, self._imports)

    def keep_asked(self, kind: str) -> None:
        """Keeps for the next process which text the command line came to, where that follows from files of text alone."""
        if self._text is not None and self._name and self.settled is self.search and not self.search.rules:
            read = {str(self.file): self._text, **self._imports}
            again.keep(self._name, kind, read, [str(path_of(str(self.file)))])

    @cached_property
    def _text(self) -> str | None:
        """What the name was made of; None where that was the kernel itself."""
        return sources.read_text(self.file) if self.file.suffix == ".tile" else None

    @cached_property
    def _imports(self) -> dict[str, str]:
        """The imported texts that the name was made of."""
        return self._read_imports()

    def _read_imports(self) -> dict[str, str]:
        return imported_texts(self._text or "", str(self.file))

    @cached_property
    def _name(self) -> str | None:
        """The name of the cache's entry: a `.tile` kernel's follows from its text, so that it need not be parsed."""
        if not self.cached or self.number is not None or self.file.suffix == ".program":
            return None
        given = tuple(tuple(sorted(m.items())) for m in (self.sizes, self.shapes))
        kernel: object
        if self._text is None:
            kernel = self.held
        else:
            kernel = str(self.file), self._text, tuple(sorted(self._imports.items())), given
        return kernel_cache.name_of(kernel, self.chip or DEFAULT_CHIP, self.settled)

    @cached_property
    def settled(self) -> SearchOptions:
        """The options with the schedule that was tuned for the kernel, if there is one; without such a file no text is read."""
        if self.file.suffix == ".tile" and not path_of(str(self.file)).exists():
            return self.search
        return sources.tuned_before(self.held, self.chip, self.search)


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove them.")] = False,
) -> None:
    """Shows where compiled kernels are kept.

    `emit` and `run` take them from there, unless TILE_EG_NO_CACHE=1 is set; TILE_EG_CACHE names another folder.
    """
    if clear:
        removed = kernel_cache.clear()
        show(f"removed {removed} compiled kernel{'s' * (removed != 1)}")
        return
    folder, count, taken = kernel_cache.held()
    show(f"{folder}: {count} compiled kernel{'s' * (count != 1)}, {size(taken)}")
