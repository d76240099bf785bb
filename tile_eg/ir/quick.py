"""Frozen dataclasses of which compilations make very many."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, TypeVar

Made = TypeVar("Made")


def quickly_made(cls: type[Made]) -> type[Made]:
    """The frozen dataclass, made in a fraction of the time: an assignment for each field, where `dataclass` has a call around
    its own guard. That a field never changes is then mypy's to see alone."""
    known: dict[str, Any] = {}
    taken = ", ".join(_parameter(f, known) for f in fields(cls))  # type: ignore[arg-type]
    kept = "; ".join(f"self.{f.name} = {f.name}" for f in fields(cls))  # type: ignore[arg-type]
    exec(f"def __init__(self, {taken}):\n {kept}", known)
    made = known["__init__"]
    made.__qualname__, made.__annotations__ = f"{cls.__qualname__}.__init__", cls.__init__.__annotations__
    cls.__init__ = made  # type: ignore[method-assign]
    del cls.__setattr__, cls.__delattr__
    return cls


def _parameter(f: Field[Any], known: dict[str, Any]) -> str:
    """A field as a parameter; its default is `known` by a name of its own."""
    if not f.init or f.default_factory is not MISSING or f.kw_only:
        raise TypeError(f"the field '{f.name}' is more than a parameter")
    if f.default is MISSING:
        return f.name
    known[f"_{f.name}"] = f.default
    return f"{f.name}=_{f.name}"


def changed(made: Made, **values: Any) -> Made:
    """`dataclasses.replace` of what is quickly made, as quickly; what it has found out of itself is not taken along."""
    own, other = vars(made), object.__new__(type(made))
    vars(other).update({name: own[name] for name in _names(type(made))}, **values)  # type: ignore[arg-type]
    return other


@cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))
