"""Writes examples/README.md: a line for each kernel, with what the search makes of it, its time, its bound and its largest error.

python -m benchmarks.families [FAMILY ...] [--page FILE]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.families import families
from benchmarks.families.example import FOLDER, Example, Sizes
from tile_eg.chips import DEFAULT_CHIP, load_chip
from tile_eg.errors import TileError
from tile_eg.inputs import drawn_sets
from tile_eg.report.text import duration

CHIPS = (DEFAULT_CHIP, "950")
HEAD = "| kernel | lines | what the search makes of it | at | 910B2 | of its bound | 950 | of its bound | largest error |"
RULE = "|---|--:|---|---|--:|---|--:|---|--:|"
SECTION = re.compile(r"(?P<mark><!-- (?!end)(?P<name>\w+) -->\n)(?P<lines>.*?)(?=^<!-- end -->$)", re.M | re.S)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.families", description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(families()))
    parser.add_argument("--page", type=Path, default=FOLDER / "README.md", help="whose sections are written")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.families) - set(families())):
        parser.error(f"no family is called {', '.join(unknown)}: there are {', '.join(families())}")
    sections = {name: _section(name) for name in given.families or families()}
    given.page.write_text(with_sections(given.page.read_text("utf-8"), sections), "utf-8")
    return 0


def with_sections(page: str, sections: Mapping[str, str]) -> str:
    """The page with these sections by name; the others are as they were."""
    return SECTION.sub(lambda m: m["mark"] + sections.get(m["name"], m["lines"]), page)


def _section(family: str) -> str:
    examples = families()[family]
    lines = [HEAD, RULE, *(line for e in examples for line in _lines(e))]
    held = [f"- `{e.path.stem}`: {e.held}" for e in examples if e.held]
    return "\n".join(["", *lines, *(["", *held] if held else []), "", ""])


def _lines(example: Example) -> list[str]:
    """A line for each real size; the first one says what is said once."""
    if sys.stderr.isatty():
        print(example.file, file=sys.stderr)
    source = [line for line in example.path.read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")]
    said = f"[{example.path.stem}]({example.path.relative_to(FOLDER)}) | {len(source)} | {example.schedule}"
    error = f"{_largest_error(example):.1e}"
    rows = []
    for label, sizes in example.real.items():
        times = " | ".join(_priced(example, sizes, chip) for chip in CHIPS)
        rows.append(f"| {said} | {label} | {times} | {error} |")
        said, error = " | | ", ""
    return rows


def _priced(example: Example, sizes: Sizes, name: str) -> str:
    """The predicted time, how many bounds that is, and what the bound is of; dashes where another chip has no schedule."""
    chip = load_chip(name)
    try:
        ours = example.compiled(sizes, name).timeline.microseconds
    except TileError:
        if name == example.chip:
            raise
        return "- | -"
    bound = example.bound(chip, sizes)
    return f"{duration(ours * 1e-6)} | {ours / bound.microseconds:.2f}, {bound.by}"


def _largest_error(example: Example) -> float:
    """Against NumPy in double precision, at the first size that is tried."""
    sizes = example.tried[0]
    kernel = example.template.instantiate(sizes)
    (drawn,) = drawn_sets(kernel, ("uniform",), seed=1, given=example.drawn(sizes, seed=1))
    got = example.compiled(sizes, example.chip).run(drawn.arrays).outputs
    meant = example.meant({n: a if a.dtype.kind in "iu" else a.astype(np.float64) for n, a in drawn.arrays.items()})
    return max(float(np.max(np.abs(got[name].astype(np.float64) - want), initial=0)) for name, want in meant.items())


if __name__ == "__main__":
    sys.exit(main())
