"""Items of work for the tests of `spread`; what they do stands in a module, as workers import it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tile_eg.errors import TileError


def doubled(number: int) -> int:
    return 2 * number


def refused(number: int) -> int:
    if number == 1:
        raise TileError("1 is not liked")
    if number == 2:
        raise KeyError("two")
    return number


def unsendable(number: int) -> object:
    return lambda: number


def process(_: int) -> int:
    return os.getpid()


def dies_once(folder: str) -> str:
    """Kills its process the first time that it is done in this folder."""
    mark = Path(folder) / "died"
    if not mark.exists():
        mark.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return f"done after {mark.read_text()}"


def dies(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sometimes_dies(item: tuple[str, int]) -> int:
    """As `dies_once` for item 3, and twice the number for every item."""
    folder, number = item
    if number == 3:
        dies_once(folder)
    return 2 * number
