"""Prints the table and keeps it as JSON under benchmarks/results. Exit code 1 where a target is missed.

python -m benchmarks.targets [--chip NAME] [--given] [--catlass DIR] [--page FILE] [FAMILY ...]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.targets.catlass import PUBLIC
from benchmarks.targets.rows import FAMILIES, Row
from tile_eg.chips import DEFAULT_CHIP, load_chip
from tile_eg.errors import TileError
from tile_eg.report.cost import within
from tile_eg.report.text import duration, table

KEPT = Path(__file__).parents[1] / "results" / "targets.json"
HEADER = (
    "kernel", "size", "ours", "open", "within", "expert", "with", "CATLASS", "literal", "bound", "by", "ours/expert",
    "ours/bound", "target",
)  # fmt: skip
RIGHT = (2, 3, 5, 7, 8, 9, 11, 12)
BLOCK = re.compile(r"(?<=<!-- targets -->\n```text\n).*?(?=^```$)", re.M | re.S)


def main(arguments: Sequence[str] | None = None) -> int:
    given = _given(arguments)
    try:
        return _table(given)
    except TileError as error:
        print(error, file=sys.stderr)
        return 1


def _table(given: argparse.Namespace) -> int:
    chip = load_chip(given.chip)
    rows = [row for family in given.families or FAMILIES for row in FAMILIES[family](chip)]
    found = [_measured(replace(row, leave_open=not given.given), given.catlass) for row in rows]
    missed = sum(bool(f["missed"]) for f in found)
    text = (
        f"{chip.name}, times as the timeline predicts them; open: with tiles that the search finds; within: the interval of the\n"
        "better one, by what is assumed of the chip; ratios: of it\n"
        f"{table([_line(f) for f in found], HEADER, RIGHT)}\n\n"
        f"{len(found) - missed} of {len(found)} rows reach their target\n"
    )
    print(text, end="")
    _keep(chip.name, found)
    if given.page:
        given.page.write_text(BLOCK.sub(lambda _: text, given.page.read_text("utf-8")), "utf-8")
    return 1 if missed else 0


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.targets", description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--chip", default=DEFAULT_CHIP)
    parser.add_argument("--given", action="store_true", help="leave out the sources with open tiles, which take the longest")
    parser.add_argument("--catlass", type=Path, metavar="DIR", help=f"{PUBLIC}, whose texts are timed beside ours")
    parser.add_argument("--page", type=Path, help="a page whose block behind <!-- targets --> becomes the table")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.families) - set(FAMILIES)):
        parser.error(f"no family is called {', '.join(unknown)}: there are {', '.join(FAMILIES)}")
    return given


def _measured(row: Row, catlass: Path | None) -> dict:
    """One row as plain data, times in microseconds; says on a terminal which one it is at."""
    if sys.stderr.isatty():
        print(f"{row.family}: {row.size}", file=sys.stderr)
    return {
        "kernel": row.family,
        "size": row.size,
        "ours": row.ours,
        "open": row.open,
        "interval": row.interval,
        "experts": row.rivals,
        "CATLASS": row.of_catlass(catlass),
        "literal": row.literal,
        "bound": row.bound.microseconds,
        "bound by": row.bound.by,
        "missed": row.missed(),
    }


def _line(found: dict) -> tuple[str, ...]:
    bound, ours = found["bound"], min(t for t in (found["ours"], found["open"]) if t)
    name, best = min(found["experts"].items(), key=lambda e: e[1], default=("-", None))
    ours_told = _time(found["ours"]), _time(found["open"]), within(found["interval"])
    times = *ours_told, _time(best), name, _time(found["CATLASS"]), _time(found["literal"]), _time(bound)
    verdict = "; ".join(found["missed"]) or "holds"
    return (found["kernel"], found["size"], *times, found["bound by"], _ratio(ours, best), _ratio(ours, bound), verdict)


def _time(microseconds: float | None) -> str:
    return "-" if microseconds is None else duration(microseconds * 1e-6)


def _ratio(ours: float, other: float | None) -> str:
    return "-" if other is None else f"{ours / other:.2f}"


def _keep(chip: str, found: list[dict]) -> None:
    """Adds the rows to those that are kept: a run of one family leaves the others as they were."""
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    kept.setdefault(chip, {}).update({f"{f['kernel']} {f['size']}": f for f in found})
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
