"""Modules of TileLang's whose names are not here. They import, as modules under them do; a name is refused where it is used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from tile_eg.errors import NotHere


def refused(module: str, instead: Mapping[str, str], otherwise: str) -> Callable[[str], NotHere]:
    """A module's `__getattr__`: each name as what is refused when it is used. `instead` has what does the work of some names,
    `otherwise` is what does it for the rest. Modules under it are found too where it has an empty `__path__`."""
    _BELOW.help[module] = otherwise

    def named(name: str) -> NotHere:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return NotHere(f"{module}.{name}", instead.get(name, otherwise))

    return named


class _Below(MetaPathFinder, Loader):
    """Finds the modules under those that `refused` was asked for."""

    def __init__(self) -> None:
        self.help: dict[str, str] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self, is_package=True) if fullname.rpartition(".")[0] in self.help else None

    def exec_module(self, module: ModuleType) -> None:
        above = module.__name__.rpartition(".")[0]
        module.__dict__["__getattr__"] = refused(module.__name__, {}, self.help[above])


_BELOW = _Below()
sys.meta_path.append(_BELOW)
