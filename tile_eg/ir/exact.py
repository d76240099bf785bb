"""A text for a value that no other value has: what names and digests are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path


def exact_text(value: object, compared: bool = False) -> str:
    """A text that is another one for every other value; of dataclasses all fields count, or those that are `compared`.

    TypeError for what has none: a function, say.
    """
    return "".join(_exact(value, compared))


def _exact(value: object, compared: bool) -> Iterator[str]:
    if value is None or isinstance(value, str | int | float | Path | Enum):
        yield f"{type(value).__name__} {value!r};"
    elif isinstance(value, tuple | list):
        yield f"{len(value)} of "
        for item in value:
            yield from _exact(item, compared)
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__name__} "
        for f in fields(value):
            if f.compare or not compared:
                yield from _exact(getattr(value, f.name), compared)
    else:
        raise TypeError(f"a {type(value).__name__} has no exact text")
