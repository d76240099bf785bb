"""A file of Ascend C as its author wrote it: its kernels, what it includes, and its compilation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tile_eg.errors import TileError
from tile_eg.simulator.build import INCLUDE, CompileError, compile_library, compile_objects
from tile_eg.simulator.compile_errors import explained
from tile_eg.simulator.devkit import ROOTS, Devkit
from tile_eg.simulator.dialect import as_cpp, global_macros, working_cores
from tile_eg.simulator.launches import KernelText, has_main, included_files, kernels, rewrite

UNIT = "program.asc"
"""The name under which the file's text is compiled; messages speak of the file itself."""


@dataclass(frozen=True)
class AscFile:
    """The text of a file, the path that it was read from, the folders in which more of what it includes lies (`-I`), and the
    checkout of the vendor's headers that it is compiled with (`--devkit`)."""

    path: Path
    source: str
    folders: Sequence[Path] = ()
    devkit: Devkit | None = None

    @cached_property
    def included(self) -> dict[str, str]:
        """The files of its own folder, and of `folders`, that it includes: name -> text."""
        return included_files(self.path, self.source, self.folders, INCLUDE)

    @cached_property
    def kernels(self) -> list[KernelText]:
        """Its kernels, then those of the files that it includes."""
        texts = (self.source, *self.included.values())
        macros = global_macros(texts)
        working = {name: cores for text in texts for name, cores in working_cores(text).items()}
        return [k for text in texts for k in kernels(text, macros, working)]

    @property
    def has_main(self) -> bool:
        """Whether the file, or one that it includes, has a main."""
        return any(has_main(text) for text in (self.source, *self.included.values()))

    def place(self, name: str) -> str:
        """The path of a file of `included`."""
        return str(next((folder / name for folder in (self.path.parent, *self.folders) if (folder / name).is_file()), name))

    def compile(self, launcher: str, defines: Mapping[str, str]) -> tuple[Path, Path]:
        """The simulator's executable and a library of the file; `launcher` is C++ that follows the file's text.

        Raises TileError at the file's own line for a text that does not compile, and for one without a kernel.
        """
        if not self.kernels:
            raise TileError(f"'{self.path}' has no kernel", help="a kernel is a function under __global__")
        types = {k.name: k.type for k in self.kernels}
        texts = {name: rewrite(as_cpp(text), types, self.place(name)) for name, text in self.included.items()}
        texts |= {UNIT: rewrite(as_cpp(self.source), types, str(self.path)), "launch.cpp": f'#include "{UNIT}"\n{launcher}'}
        objects, roots = [], ["-I."]
        if self.devkit:
            sources = (self.source, *self.included.values())
            texts = {name: as_cpp(text) for name, text in self.devkit.texts(sources).items()} | texts
            roots = ["-DTILE_SIM_DEVKIT", *(f"-I./{root}" for root in ROOTS)]
            objects = compile_objects(self.devkit.host_sources(sources), [*roots, f"-DTILE_SIM_ARCHITECTURE={defines['__NPU_ARCH__']}"])
        folders = (folder.resolve() for folder in (self.path.parent, *self.folders))
        flags = [*(f"-D{name}={value}" for name, value in defines.items()), *roots, *(f"-I{folder}" for folder in folders)]
        flags += map(str, objects)
        try:
            return compile_library(texts, flags)
        except CompileError as error:
            included = {name: (self.place(name), text) for name, text in self.included.items()}
            raise explained(error.output, self.path, self.source, UNIT, included) from None
