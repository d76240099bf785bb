"""What is made once in a compilation: candidates of the search that have a program in common share what follows from it.

Some of it is kept for the compilations that follow: what depends on no size of a matrix, and so comes again at other sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, TypeVar

KEPT = 256
"""So many things are kept for compilations that follow."""
T = TypeVar("T")
_made: ContextVar[dict[Hashable, Any] | None] = ContextVar("made", default=None)
_kept: dict[Hashable, Any] = {}  # what was asked for last stands last
_turn = Lock()


class Itself:
    """A thing as a key, to which nothing else is equal."""

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


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


def kept(what: str, key: Hashable, make: Callable[[], T]) -> T:
    """As `once`; compilations that follow find it too, while it is one of the `KEPT` that were asked for last."""
    if _made.get() is None:
        return make()
    missing, known = object(), (what, key)
    with _turn:
        found = _kept.pop(known, missing)
    made = make() if found is missing else found
    with _turn:
        _kept[known] = made
        while len(_kept) > KEPT:
            del _kept[next(iter(_kept))]
    return made


def forget() -> None:
    """Nothing of the compilations before is known any more."""
    with _turn:
        _kept.clear()
