"""Programs and kernels as plain JSON values, and back: what is kept of them on disk. Nothing that is read is executed.

An object is its class and the values of its fields; only classes of `MODULES` are made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from tile_eg import errors
from tile_eg.ir import index, kernel, passed, sizes
from tile_eg.ir.program import instructions, program
from tile_eg.ops import types
from tile_eg.ops.types import DType, dtype_of

MODULES = (errors, types, index, kernel, passed, sizes, instructions, program)


def to_plain(x: Any) -> Any:
    """A value as JSON has it. TypeError for what has no such form: a function, say."""
    if x is None or isinstance(x, bool | int | float) or type(x) is str:
        return x
    if isinstance(x, tuple):
        return [to_plain(item) for item in x]
    if isinstance(x, Enum):
        return {"of": _name(type(x)), "is": x.name}
    if isinstance(x, Mapping):
        return {"pairs": [[to_plain(k), to_plain(v)] for k, v in x.items()]}
    if isinstance(x, frozenset):
        return {"set": [to_plain(item) for item in sorted(x)]}
    if is_dataclass(x) and not isinstance(x, type) and _name(type(x)) in _classes():
        return {"of": _name(type(x)), "with": [to_plain(getattr(x, f.name)) for f in _kept(type(x))]}
    raise TypeError(f"a {type(x).__name__} has no plain form")


def from_plain(x: Any) -> Any:
    """The value that `to_plain` made this of. KeyError, TypeError or ValueError for what it did not make."""
    if isinstance(x, list):
        return tuple(map(from_plain, x))
    if not isinstance(x, dict):
        return x
    if "pairs" in x:
        return {from_plain(k): from_plain(v) for k, v in x["pairs"]}
    if "set" in x:
        return frozenset(map(from_plain, x["set"]))
    found = _classes()[x["of"]]
    if issubclass(found, Enum):
        return found[x["is"]]
    names = (f.name for f in _kept(found))
    made = found(**dict(zip(names, map(from_plain, x["with"]), strict=True)))
    return dtype_of(made.name) or made if isinstance(made, DType) else made  # element types are told apart by `is`


def _kept(of: type) -> list[Field[Any]]:
    return [f for f in fields(of) if f.init and f.metadata.get("kept", True)]


def _name(of: type) -> str:
    return f"{of.__module__}.{of.__qualname__}"


@cache
def _classes() -> dict[str, Any]:
    """The classes of the modules by their names."""
    found = (c for m in MODULES for c in vars(m).values() if isinstance(c, type))
    return {_name(c): c for c in found if is_dataclass(c) or issubclass(c, Enum)}
