"""Frozen records: dataclasses whose methods are not compiled until they are called.

A command imports some 300 of them. The standard decorator compiles six methods for each while it is imported; most of
these are never called. `dataclasses.replace`, `fields`, `asdict` and `is_dataclass` work as ever.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

C = TypeVar("C", bound=type)
Made = TypeVar("Made")


@overload
def record(cls: C, /) -> C: ...
@overload
def record(*, eq: bool = True, repr: bool = True, guarded: bool = True) -> Callable[[C], C]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: C | None = None, /, *, eq: bool = True, repr: bool = True, guarded: bool = True) -> C | Callable[[C], C]:
    """What `dataclass(frozen=True, eq=eq, repr=repr)` makes of a class, in a fraction of the time. Records that are not
    `guarded` are made quicker as well; that their fields never change is then mypy's to see alone."""
    if cls is None:
        return lambda c: _record(c, eq, repr, guarded)
    return _record(cls, eq, repr, guarded)


def changed(made: Made, **values: Any) -> Made:
    """`dataclasses.replace`, quicker: nothing is checked, `__post_init__` is not called, and what a record has found out of
    itself is not taken along."""
    own, other = vars(made), object.__new__(type(made))
    vars(other).update({name: own[name] for name in _names(type(made))}, **values)  # type: ignore[arg-type]
    return other


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def _record(cls: C, eq: bool, repr: bool, guarded: bool) -> C:
    own = {name for name, value in vars(cls).items() if value is not None}  # `__hash__` is, beside an `__eq__` of its own
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    methods: dict[str, Any] = {"__init__": _Initializer(cls, guarded)}
    if guarded:
        methods |= {"__setattr__": _set, "__delattr__": _delete}
    if eq:
        methods |= _comparison(tuple(f.name for f in fields(cls) if f.compare))
    if repr:
        methods["__repr__"] = _represent
    for name in methods.keys() - own:
        setattr(cls, name, methods[name])
    return cls


class _Initializer:
    """Stands for `__init__` until that is looked at, which compiles it."""

    def __init__(self, cls: type, guarded: bool):
        self.cls, self.guarded = cls, guarded

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = _initializer(self.cls, self.guarded)
        self.cls.__init__ = made  # type: ignore[misc]
        return made if instance is None else made.__get__(instance, owner)


def _initializer(cls: Any, guarded: bool) -> Any:
    """`__init__`, with a parameter for each field, as the standard decorator writes it."""
    parts = fields(cls)
    known: dict[str, Any] = {"_put": object.__setattr__, "_missing": MISSING}
    taken = [_parameter(f, known) for f in parts if f.init and not f.kw_only]
    by_name = [_parameter(f, known) for f in parts if f.init and f.kw_only]
    assign = "_put(self, {0!r}, {1})" if guarded else "self.{0} = {1}"
    body = [assign.format(f.name, _value(f)) for f in parts if f.init or f.default_factory is not MISSING]
    body += ["self.__post_init__()"] * hasattr(cls, "__post_init__")
    text = f"def __init__({', '.join(['self', *taken, *['*'] * bool(by_name), *by_name])}):\n {'; '.join(body) or 'pass'}"
    exec(text, known)
    made = known["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {f.name: f.type for f in parts if f.init} | {"return": None}
    return made


def _parameter(f: Field[Any], known: dict[str, Any]) -> str:
    """A field as a parameter; its default is `known` by a name of its own."""
    if f.default_factory is not MISSING:
        return f"{f.name}=_missing"
    if f.default is MISSING:
        return f.name
    known[f"_else_{f.name}"] = f.default
    return f"{f.name}=_else_{f.name}"


def _value(f: Field[Any]) -> str:
    if f.default_factory is MISSING:
        return f.name
    made = f"self.__dataclass_fields__[{f.name!r}].default_factory()"
    return f"{made} if {f.name} is _missing else {f.name}" if f.init else made


def _comparison(names: tuple[str, ...]) -> dict[str, Any]:
    of = _values(names)

    def __eq__(self: Any, other: Any) -> bool:
        return of(self) == of(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(of(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


@recursive_repr()
def _represent(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
