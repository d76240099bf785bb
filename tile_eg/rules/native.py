"""egglog's native module alone (its Python package takes ten times as long to import, and we use none of it), and the way to it.

Whatever goes into an e-graph goes through `run`, and its tables come from `functions`: in between, names are as `naming` spells
them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from tempfile import NamedTemporaryFile
from types import ModuleType
from typing import Any

from tile_eg.rules.naming import spelled, unspelled


def load() -> ModuleType:
    """`egglog.bindings`, without the package around it where the extension module can be found by itself."""
    if "egglog" not in sys.modules and (path := _extension()):
        spec = spec_from_file_location("egglog.bindings", path)
        if spec and spec.loader:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    from egglog import bindings

    return bindings


def _extension() -> str | None:
    package = PathFinder.find_spec("egglog")
    found = PathFinder.find_spec("bindings", package.submodule_search_locations) if package else None
    return found.origin if found else None


def run(egraph: Any, commands: str) -> list:
    """What egglog answers to commands. RuntimeError where it refuses them, a panic of its own included."""
    try:
        return egraph.run_program(*egraph.parse_program(spelled(commands)))
    except BaseException as error:  # a Rust panic is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        raise RuntimeError(unspelled(str(error))) from error


CHUNK = 20
"""Commands that are handed over together: thousands in one call take twenty times as long."""


def run_all(egraph: Any, commands: Sequence[str]) -> None:
    """As `run`, for many commands that nobody asks an answer of.

    They go through a file, if there is a folder for one: egglog reads it in a third of the time in which its module makes objects
    of commands and takes them back.
    """
    try:
        with NamedTemporaryFile("w", suffix=".egg", encoding="utf-8") as file:
            file.write(spelled("\n".join(commands)))
            file.flush()
            run(egraph, f'(include "{file.name}")')
    except OSError:
        for i in range(0, len(commands), CHUNK):
            run(egraph, "\n".join(commands[i : i + CHUNK]))


def functions(egraph: Any) -> dict[str, Any]:
    """The tables of an e-graph by the names that the commands gave them."""
    return {unspelled(name): table for name, table in egraph.freeze().functions.items()}
