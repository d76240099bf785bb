"""`dataclass` as the standard library has it, for hundreds of classes of which one process uses some.

The standard decorator compiles up to six methods of each class when its module is imported, which took a quarter of a first
compilation. Here a method is compiled when it is called for the first time, and those that no loop calls are written once for
all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
        """As `dataclasses.dataclass`, of which a class here uses no other options."""
        return _record(cls, frozen, eq, repr) if cls else lambda c: _record(c, frozen, eq, repr)


def _record(cls: type, frozen: bool, eq: bool, repr: bool) -> type:
    documented, cls.__doc__ = cls.__doc__, cls.__doc__ or cls.__name__  # without a text a signature would be read for it
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    cls.__doc__ = documented
    _add(cls, "__init__", _late(cls, "__init__", _init))
    if repr:
        _add(cls, "__repr__", _shown)
    if eq:
        hashed = cls.__dict__.get("__hash__") or ("__hash__" in cls.__dict__ and "__eq__" not in cls.__dict__)
        _add(cls, "__eq__", _late(cls, "__eq__", _eq))
        if not hashed:
            cls.__hash__ = _late(cls, "__hash__", _hash) if frozen else None  # type: ignore[assignment]
    if frozen:
        _freeze(cls)
    return cls


def _add(cls: type, name: str, method: Callable[..., Any]) -> None:
    """What the class writes itself stays."""
    if name not in cls.__dict__:
        setattr(cls, name, method)


def _late(cls: type, name: str, compiled: Callable[[type], Callable[..., Any]]) -> Callable[..., Any]:
    """A method that puts the compiled one into its place, and calls it."""

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        made = compiled(cls)
        made.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, made)
        return made(self, *args, **kwargs)

    return method


def _init(cls: type) -> Callable[..., Any]:
    """Fields that are given, then those by keyword alone; each with its default, or what its factory makes."""
    fields = dataclasses.fields(cls)
    names: dict[str, Any] = {"_missing": dataclasses.MISSING, "_set": object.__setattr__}
    places = [_place(f, names) for f in fields if f.init and not f.kw_only]
    named = [_place(f, names) for f in fields if f.init and f.kw_only]
    head = ", ".join(["self", *places, *(["*", *named] if named else [])])
    put = "self.{} = {}" if cls.__setattr__ is object.__setattr__ else "_set(self, {!r}, {})"
    body = [put.format(f.name, value) for f in fields if (value := _value(f, names))]
    body += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    return _compiled("__init__", head, body or ["pass"], names)


def _place(field: dataclasses.Field[Any], names: dict[str, Any]) -> str:
    """A parameter; a default is known by a name of its own."""
    if field.default_factory is not dataclasses.MISSING:
        return f"{field.name}=_missing"
    if field.default is dataclasses.MISSING:
        return field.name
    names[f"_default_{field.name}"] = field.default
    return f"{field.name}=_default_{field.name}"


def _value(field: dataclasses.Field[Any], names: dict[str, Any]) -> str:
    """What a field becomes; nothing where it is neither given nor made."""
    if field.default_factory is dataclasses.MISSING:
        return field.name if field.init else ""
    names[made := f"_made_{field.name}"] = field.default_factory
    return f"{made}() if {field.name} is _missing else {field.name}" if field.init else f"{made}()"


def _eq(cls: type) -> Callable[..., Any]:
    names = [f.name for f in dataclasses.fields(cls) if f.compare]
    same = f"return {_tuple('self', names)} == {_tuple('other', names)}"
    return _compiled("__eq__", "self, other", [f"if other.__class__ is self.__class__: {same}", "return NotImplemented"], {})


def _hash(cls: type) -> Callable[..., Any]:
    names = [f.name for f in dataclasses.fields(cls) if (f.compare if f.hash is None else f.hash)]
    return _compiled("__hash__", "self", [f"return hash({_tuple('self', names)})"], {})


def _tuple(of: str, names: Iterable[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _compiled(name: str, head: str, body: Iterable[str], names: dict[str, Any]) -> Callable[..., Any]:
    lines = "\n    ".join([f"def {name}({head}):", *body])
    exec(lines, names)
    return names[name]


@recursive_repr()
def _shown(self: Any) -> str:
    parts = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(parts)})"


def _freeze(cls: type) -> None:
    def set_(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:  # type: ignore[attr-defined]
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:  # type: ignore[attr-defined]
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    cls.__setattr__, cls.__delattr__ = set_, delete  # type: ignore[assignment, method-assign]
