"""Which plain functions use words of the language, so that a call of one is written out and not run."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from tile_eg import language
from tile_eg.language.kernels import Macro
from tile_eg.language.words import Word


def uses_words(function: FunctionType) -> bool:
    """Whether the function, or one that it calls, has a word that means something in a kernel alone."""
    return _uses(function, set())


def _uses(function: FunctionType, seen: set[FunctionType]) -> bool:
    if function in seen or (function.__module__ or "").startswith("tile_eg"):
        return False
    seen.add(function)
    names = set(_names(function.__code__))
    return any(_is_word(v, names) or (isinstance(v, FunctionType) and _uses(v, seen)) for v in _values(function, names))


def _is_word(value: Any, names: set[str]) -> bool:
    if value is language or value is language.tile:
        spaces = (language, language.tile)
        return any(_is_word(getattr(space, n, None), set()) for space in spaces for n in names)
    return isinstance(value, Macro) or (isinstance(value, Word) and value.number is None)


def _values(function: FunctionType, names: set[str]) -> Iterator[Any]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        names = names - {name}
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            continue
    yield from (function.__globals__[n] for n in names if n in function.__globals__)


def _names(code: CodeType) -> Iterator[str]:
    """The names and attributes in a function, those of functions defined in it included."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
