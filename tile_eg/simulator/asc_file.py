"""A file of Ascend C as its author wrote it: its kernels, what it includes, and its compilation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tile_eg.errors import TileError
from tile_eg.simulator.build import CompileError, compile_library
from tile_eg.simulator.compile_errors import explained
from tile_eg.simulator.launches import KernelText, has_main, kernels, local_files, rewrite

UNIT = "program.asc"
"""The name under which the file's text is compiled; messages speak of the file itself."""


@dataclass(frozen=True)
class AscFile:
    """The text of a file, and the path that it was read from."""

    path: Path
    source: str

    @cached_property
    def included(self) -> dict[str, str]:
        """The files of its own folder that it includes: name -> text."""
        return local_files(self.path, self.source)

    @cached_property
    def kernels(self) -> list[KernelText]:
        """Its kernels, then those of the files that it includes."""
        return [k for text in (self.source, *self.included.values()) for k in kernels(text)]

    @property
    def has_main(self) -> bool:
        """Whether the file, or one that it includes, has a main."""
        return any(has_main(text) for text in (self.source, *self.included.values()))

    def compile(self, launcher: str, defines: Mapping[str, str]) -> tuple[Path, Path]:
        """The simulator's executable and a library of the file; `launcher` is C++ that follows the file's text.

        Raises TileError at the file's own line for a text that does not compile, and for one without a kernel.
        """
        if not self.kernels:
            raise TileError(f"'{self.path}' has no kernel", help="a kernel is a function under __global__")
        types = {k.name: k.type for k in self.kernels}
        texts = {name: rewrite(text, types, str(self.path.parent / name)) for name, text in self.included.items()}
        texts |= {UNIT: rewrite(self.source, types, str(self.path)), "launch.cpp": f'#include "{UNIT}"\n{launcher}'}
        flags = [*(f"-D{name}={value}" for name, value in defines.items()), f"-I{self.path.parent.resolve()}"]
        try:
            return compile_library(texts, flags)
        except CompileError as error:
            raise explained(error.output, self.path, self.source, UNIT, self.included) from None
