"""What became of one item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.errors import TileError
from tile_eg.ops.records import record

TRIES = 3
"""Workers that may die at one item before it is left."""


@record
class Outcome:
    """The item by its position, and its value; or why it has none. `fault`: the error is no user's mistake (TileError)."""

    item: int
    value: Any = None
    error: str = ""
    fault: bool = False
    worker: str = ""


def done(function: Callable[[Any], Any], item: Any, position: int, worker: str = "") -> Outcome:
    """The outcome of one item. A KeyboardInterrupt goes on to the caller."""
    try:
        return Outcome(position, function(item), worker=worker)
    except TileError as error:
        return Outcome(position, error=str(error), worker=worker)
    except Exception as error:
        return Outcome(position, error=f"{type(error).__name__}: {error}", fault=True, worker=worker)


def given_up(position: int) -> Outcome:
    """An item at which too many workers died."""
    return Outcome(position, error=f"{TRIES} workers died at it, one after the other", fault=True)
