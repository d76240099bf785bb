"""Lists, dictionaries and sets of Python in a kernel: they change when it is read, not while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Held = Mapping[str, tuple[Any, Any]]
"""What was seen of lists by their names: the list itself, and what it held then."""


def seen(names: Mapping[str, Any]) -> Held:
    """The lists, dictionaries and sets among what is bound."""
    return {name: (value, _held(value)) for name, value in names.items() if isinstance(value, list | dict | set)}


def changed(lists: Held) -> str | None:
    """The name of one that holds something else now."""
    return next((name for name, (value, was) in lists.items() if not _same(value, was)), None)


def copied(value: Any) -> Any:
    """A list, a dictionary or a set with copies of those in it; any other value itself."""
    if type(value) is dict:
        return {k: copied(v) for k, v in value.items()}
    return type(value)(map(copied, value)) if type(value) in (list, set) else value


def _held(value: Any) -> Any:
    match value:
        case list():
            return [_held(v) for v in value]
        case dict():
            return {k: _held(v) for k, v in value.items()}
        case set():
            return frozenset(value)
    return value


def _same(value: Any, was: Any) -> bool:
    match value:
        case list():
            return isinstance(was, list) and len(value) == len(was) and _all_same(zip(value, was, strict=True))
        case dict():
            return isinstance(was, dict) and value.keys() == was.keys() and _all_same((v, was[k]) for k, v in value.items())
        case set():
            return value == was
    return value is was or (isinstance(value, int | float | str) and type(value) is type(was) and value == was)


def _all_same(pairs: Iterable[tuple[Any, Any]]) -> bool:
    return all(_same(value, was) for value, was in pairs)
