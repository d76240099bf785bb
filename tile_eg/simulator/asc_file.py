"""A file of Ascend C as its author wrote it: its kernels, what it includes, and its compilation."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path

from tile_eg.errors import TileError
from tile_eg.ops.records import record
from tile_eg.simulator.build import INCLUDE, UNIT, CompileError, compile_library, compile_objects, preprocessed
from tile_eg.simulator.compile_errors import explained
from tile_eg.simulator.devkit import ROOTS, Devkit
from tile_eg.simulator.dialect import as_cpp, global_macros, working_cores
from tile_eg.simulator.findings import Simulation
from tile_eg.simulator.launches import KernelText, has_main, included_files, kernels, rewrite


@record
class AscFile:
    """The text of a file, the path that it was read from, the folders in which more of what it includes lies (`-I`), the checkout
    of the vendor's headers that it is compiled with (`--devkit`), and the macros (`-D`): name -> value."""

    path: Path
    source: str
    folders: Sequence[Path] = ()
    devkit: Devkit | None = None
    defines: Mapping[str, str] = field(default_factory=dict)

    def with_macros(self, defines: Mapping[str, str]) -> AscFile:
        """The file as it is compiled with these."""
        return replace(self, defines=defines)

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
        taken = partial(preprocessed, beside=self.included, defines=self.defines)
        return [k for text in texts for k in kernels(text, macros, working, taken)]

    @property
    def has_main(self) -> bool:
        """Whether the file, or one that it includes, has a main."""
        return any(has_main(text) for text in (self.source, *self.included.values()))

    def place(self, name: str) -> str:
        """The path of a file of `included`."""
        return str(next((folder / name for folder in (self.path.parent, *self.folders) if (folder / name).is_file()), name))

    def told(self, done: Simulation) -> Simulation:
        """The run, with the texts of the files that its findings may name."""
        paths = {name: self.place(name) for name in self.included}
        if self.devkit is None:
            return replace(done, files=self.included, paths=paths)
        findings = [replace(f, file=_plain(f.file), other_file=_plain(f.other_file)) for f in done.findings]
        named = {name: text for f in findings for name in (f.file, f.other_file) if (text := self.devkit.text(name))}
        paths |= {name: str(self.devkit.root / name) for name in named}
        return replace(done, findings=findings, files={**self.included, **named}, paths=paths)

    def compile(self, launcher: str) -> tuple[Path, Path]:
        """The simulator's executable and a library of the file; `launcher` is C++ that follows the file's text.

        Raises TileError at the file's own line for a text that does not compile, and for one without a kernel.
        """
        if not self.kernels:
            raise TileError(f"'{self.path}' has no kernel", help="a kernel is a function under __global__")
        types = {k.name: k.type for k in self.kernels}
        texts = {name: rewrite(as_cpp(text), types, self.place(name)) for name, text in self.included.items()}
        texts |= {UNIT: rewrite(as_cpp(self.source), types, str(self.path)), "launch.cpp": f'#include "{UNIT}"\n{launcher}'}
        beside, objects, roots = self._of_the_devkit()
        texts = beside | texts
        folders = (folder.resolve() for folder in (self.path.parent, *self.folders))
        flags = [*(f"-D{name}={value}" for name, value in self.defines.items()), *roots, *(f"-I{folder}" for folder in folders)]
        flags += map(str, objects)
        try:
            return compile_library(texts, flags)
        except CompileError as error:
            included = {name: (self.place(name), text) for name, text in self.included.items()}
            raise explained(error.output, self.path, self.source, UNIT, included) from None

    def _of_the_devkit(self) -> tuple[dict[str, str], list[Path], list[str]]:
        """What the checkout adds to the compilation: texts, objects of the host's side, and flags."""
        if self.devkit is None:
            return {}, [], ["-I."]
        sources = (self.source, *self.included.values())
        texts = {name: as_cpp(text) for name, text in self.devkit.texts(sources).items()}
        flags = ["-DTILE_SIM_DEVKIT", *(f"-I./{root}" for root in ROOTS)]
        host = [*flags, f"-DTILE_SIM_ARCHITECTURE={self.defines['__NPU_ARCH__']}"]
        return texts, compile_objects(self.devkit.host_sources(sources), host), flags


def _plain(name: str) -> str:
    return posixpath.normpath(name) if name else ""
