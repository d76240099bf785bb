"""egglog's native module alone: its Python package takes ten times as long to import, and we use none of it."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType


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
