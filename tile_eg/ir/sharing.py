"""What is made once in a compilation: candidates of the search that have a program in common share what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
_made: ContextVar[dict[Hashable, Any] | None] = ContextVar("made", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Within it, and within what it calls, `once` makes a thing once. An inner one shares with the outer one."""
    if _made.get() is not None:
        yield
        return
    token = _made.set({})
    try:
        yield
    finally:
        _made.reset(token)


def once(what: str, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives, or gave for an equal key: all that it depends on, and that nobody changes. An error is not kept."""
    made = _made.get()
    if made is None:
        return make()
    if (what, key) not in made:
        made[what, key] = make()
    return made[what, key]
