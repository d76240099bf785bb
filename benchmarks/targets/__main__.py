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
from tile_eg.chips import DEFAULT_CHIP, Chip, load_chip
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
    found = [f for family in given.families or FAMILIES for f in _family(family, chip, given)]
    text = _text(chip.name, found)
    print(text, end="")
    if given.page:
        of_page = _text(chip.name, _kept_rows(chip))
        given.page.write_text(BLOCK.sub(lambda _: of_page, given.page.read_text("utf-8")), "utf-8")
    return 1 if _missed(found) else 0


def _family(name: str, chip: Chip, given: argparse.Namespace) -> list[dict]:
    """The rows of a family, which are kept as soon as they are measured."""
    found = [_measured(replace(row, leave_open=not given.given), given.catlass) for row in FAMILIES[name](chip)]
    _keep(chip.name, found)
    return found


def _text(chip: str, found: list[dict]) -> str:
    return (
        f"{chip}, times as the timeline predicts them; open: with tiles that the search finds; within: the interval of the\n"
        "better one, by what is assumed of the chip; ratios: of it\n"
        f"{table([_line(f) for f in found], HEADER, RIGHT)}\n\n"
        f"{len(found) - _missed(found)} of {len(found)} rows reach their target\n"
    )


def _missed(found: list[dict]) -> int:
    return sum(bool(f["missed"]) for f in found)


def _kept_rows(chip: Chip) -> list[dict]:
    """Those of this run and of earlier ones, of all families, in their order."""
    kept, rows = _kept()[chip.name], [row for rows in FAMILIES.values() for row in rows(chip)]
    return [kept[_key(row.family, row.size)] for row in rows if _key(row.family, row.size) in kept]


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.targets", description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--chip", default=DEFAULT_CHIP)
    parser.add_argument("--given", action="store_true", help="leave out the sources with open tiles, which take the longest")
    parser.add_argument("--catlass", type=Path, metavar="DIR", help=f"{PUBLIC}, whose texts are timed beside ours")
    parser.add_argument("--page", type=Path, help="a page whose table becomes that of all rows kept here")
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


def _key(kernel: str, size: str) -> str:
    return f"{kernel} {size}"


def _kept() -> dict[str, dict[str, dict]]:
    """All rows that were measured here, by chip, kernel and size."""
    return json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}


def _keep(chip: str, found: list[dict]) -> None:
    """Adds the rows to those that are kept: a run of one family leaves the others as they were."""
    kept = _kept()
    kept.setdefault(chip, {}).update({_key(f["kernel"], f["size"]): f for f in found})
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
