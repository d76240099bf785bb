"""OR-tools' CP-SAT without pandas: its Python layer imports it for series of variables, which no model here has.

The import takes four times as long with it as without.
"""

from __future__ import annotations

import builtins
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType, SimpleNamespace
from typing import Any

NAME = "ortools.sat.python.cp_model"


@cache
def load_cp_model() -> ModuleType:
    """`ortools.sat.python.cp_model`; a copy of our own that knows no pandas, where it can be made."""
    try:
        return _without_pandas()
    except Exception:  # another release of OR-tools may ask more of pandas than two names
        return import_module(NAME)


def _without_pandas() -> ModuleType:
    """The module with imports of its own, so that whoever else uses OR-tools in this process finds what they expect."""
    spec = find_spec(NAME)
    if spec is None or spec.loader is None:
        raise ImportError(NAME)
    module = module_from_spec(spec)
    series = SimpleNamespace(Index=type("Index", (), {}), Series=type("Series", (), {}))

    def imported(name: str, *arguments: Any, **options: Any) -> Any:
        return series if name == "pandas" else builtins.__import__(name, *arguments, **options)

    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": imported}
    spec.loader.exec_module(module)
    return module
