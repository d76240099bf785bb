"""One kernel at several sizes: what is predicted at each, and which schedule is chosen there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tile_eg.report.cost import between
from tile_eg.report.text import Text, table

if TYPE_CHECKING:
    from tile_eg.report.cost import Cost

At = tuple[Mapping[str, int], "Cost", str]
"""Sizes, the predicted cost at them, and the decisions of the schedule in a line."""


def at_sizes(found: Sequence[At]) -> Text:
    """A table with a row for each set of sizes, and below it the decisions that each schedule stands for."""
    names = list(found[0][0])
    letters = {line: chr(ord("A") + n) for n, line in enumerate(dict.fromkeys(line for _, _, line in found))}
    rows = [
        (*sizes.values(), between(cost.microseconds, cost.interval), cost.timeline.blocks, cost.timeline.bound, letters[line])
        for sizes, cost, line in found
    ]
    shown = table(rows, (*names, "predicted", "blocks", "bound by", "schedule"), right=range(len(names) + 2))
    return Text("\n".join([shown, "", *(f"{letter}  {line}" for line, letter in letters.items())]))
