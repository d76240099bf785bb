"""The table of needed rules in docs/rules.md, written and read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from benchmarks.rules.needed import Witness, choices
from tile_eg.rules import registry

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
REFUSED = "does not compile"
INTRODUCTION = """# What each rule is good for

Every rule that is no fact, with a kernel that gets slower without it or does not compile: microseconds that the timeline predicts
on the 910B2. `make rules` writes this page; a slow test compiles every line again. The kernels are the examples, the corner cases
of `tests/extract/kernels.py`, and those of `benchmarks/rules/kernels.py`.

"""


def page_of(found: Iterable[Witness]) -> str:
    """The whole page."""
    by_rule = {w.rule: w for w in found}
    rows = ["| rule | law | kernel | with it | without it |", "|---|---|---|---:|---:|"]
    rows += [_row(by_rule[r]) for r in choices() if r in by_rule]
    spare = [r for r in choices() if r not in by_rule]
    about = "No kernel of these needs, by the time that is predicted for a launch block a tile or for its best order of tiles:"
    listed = f"\n## Not needed by any of them\n\n{about}\n\n" + "".join(f"- `{r}`: {registry()[r].law}\n" for r in spare)
    return INTRODUCTION + "\n".join(rows) + "\n" + (listed if spare else "")


def _row(w: Witness) -> str:
    without = REFUSED if w.without is None else f"{w.without:.3f} us"
    return f"| `{w.rule}` | {registry()[w.rule].law} | {w.kernel} | {w.with_it:.3f} us | {without} |"


def rows_of(page: str) -> list[tuple[str, str]]:
    """(rule, kernel) of every line of the table."""
    return re.findall(r"^\| `([\w-]+)` \| \w+ \| (.*?) \|", page, re.M)


def spare_of(page: str) -> list[str]:
    """The rules that no kernel needs."""
    return re.findall(r"^- `([\w-]+)`", page, re.M)
