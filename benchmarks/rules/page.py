"""The table of needed rules in docs/rules.md, written and read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from benchmarks.rules.needed import STANDS_IN, Witness, choices
from tile_eg.rules import registry

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
REFUSED = "does not compile"
INTRODUCTION = """# What each rule is good for

Rules that are no facts, each with a kernel that gets slower without it or does not compile: microseconds that the timeline
predicts on the 910B2, or on the 950 where the kernel's name says so. `make rules` writes this page in about a minute; a rule for
which no kernel is found ends it with an error, and `make rule NAME=v-axpy` judges one rule. Slow tests compile every line again.
The kernels are the examples, the corner cases of `tests/extract/kernels.py`, and those of `benchmarks/rules/texts.py`.

"""


def page_of(found: Iterable[Witness]) -> str:
    """The whole page."""
    by_rule = {w.rule: w for w in found}
    rows = ["| rule | law | kernel | with it | without it |", "|---|---|---|---:|---:|"]
    rows += [_row(by_rule[r]) for r in choices() if r in by_rule]
    spare = [r for r in choices() if r not in by_rule]
    listed = "\n## Without a witness\n\n" + "".join(f"- `{r}`: {registry()[r].law}\n" for r in spare)
    return INTRODUCTION + "\n".join(rows) + "\n" + _pairs() + (listed if spare else "")


def _pairs() -> str:
    names = (f"`{other}` for `{rule}`" for rule, other in STANDS_IN.items())
    return f"\nWhere another rule would stand in, both were left out: {', '.join(names)}.\n"


def _row(w: Witness) -> str:
    without = REFUSED if w.without is None else f"{w.without:.3f} us"
    return f"| `{w.rule}` | {registry()[w.rule].law} | {w.kernel} | {w.with_it:.3f} us | {without} |"


def rows_of(page: str) -> list[tuple[str, str]]:
    """(rule, kernel) of every line of the table."""
    return re.findall(r"^\| `([\w-]+)` \| \w+ \| (.*?) \|", page, re.M)
