"""A kernel whose sizes each call tells, looked at before there is a call: at sizes that stand for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from tile_eg.errors import TileError, attempted

Made = TypeVar("Made")

EXAMPLES = (128, 512, 64, 1000)
"""Sizes at which a kernel is looked at where each call tells them; the first at which it is right is enough."""


def at_example(names: Iterable[str], way: Callable[[Mapping[str, int]], Made]) -> tuple[Made, dict[str, int]]:
    """What `way` gives with an example for each size in `names`, and the example.

    TileError where there is a fault at every example: the one at the first of them.
    """
    names, faults = tuple(names), []
    for n in EXAMPLES:
        example = dict.fromkeys(names, n)
        held = attempted(lambda at=example: way(at))  # type: ignore[misc]
        if not isinstance(held, TileError):
            return held, example
        faults.append(held)
    raise _first_of(faults, names)


def _first_of(faults: list[TileError], names: Iterable[str]) -> TileError:
    """The first of the faults at the examples; where others differ, it says at which sizes it is."""
    first, *others = faults
    if any(fault.message != first.message for fault in others):
        shown = ", ".join(f"{name}={EXAMPLES[0]}" for name in names)
        first.notes += ((f"so it is at {shown}; give sizes that the kernel is for", None),)
    return first
