"""The differences as a table of a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.judges.report import FIT, LIBRARY, Judged, Row, counted, differences, word
from tile_eg.errors import TileError

BLOCKS = ("judges", "judges counted")
_JUDGE = {LIBRARY: "library", FIT: "table"}


def put(page: Path, found: Sequence[Row], words: Sequence[Judged]) -> None:
    """Writes the table of what was judged between the page's two comments."""
    text = page.read_text("utf-8")
    for name, block in zip(BLOCKS, (differing(found, words), f"{counted(found, words)}.\n"), strict=True):
        found_there = re.search(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", text, re.DOTALL)
        if not found_there:
            raise TileError(f"{page} has no <!-- {name} --> with an <!-- end of {name} --> behind it")
        text = text[: found_there.start()] + block + text[found_there.end() :]
    page.write_text(text, "utf-8")


def differing(found: Sequence[Row], words: Sequence[Judged]) -> str:
    """A line for what was judged of each difference, with the ratios that were found."""
    lines = ["| instruction | judge | ours to its price | settled by | why ours stays |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(_line(w, found, words) for w in words)]) + "\n"


def _line(said: Judged, found: Sequence[Row], words: Sequence[Judged]) -> str:
    ratios = [row.ratio(judge) or 0.0 for row, judge in differences(found) if word(row, judge, words) is said]
    low, high = (f"{r:.2f}" for r in (min(ratios, default=said.low), max(ratios, default=said.high)))
    names = ", ".join(f"`{name.partition('.')[2]}`" for name in said.of)
    of = " ".join(filter(None, (names, "of " + " and ".join(said.types) if said.types else "", said.when)))
    return f"| {of} | {_JUDGE[said.judge]} | {low if low == high else f'{low} to {high}'} | {said.by or 'open'} | {said.why} |"
