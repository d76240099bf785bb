"""Holds every instruction of the 2201 tables against two judges. Exit code 1 where a difference above 15 % is not judged.

python -m benchmarks.judges [--pypto FOLDER] [--fit FILE] [--csv OUT] [--page FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.judges.cases import asked_for, cases, unpriced
from benchmarks.judges.judges import INSTALL, PUBLIC, fits, library
from benchmarks.judges.page import put
from benchmarks.judges.report import JUDGES, Judged, Row, counted, idle, judged, prices, rows, told, unjudged, write_csv
from tile_eg.errors import TileError
from tile_eg.report.text import table


def main() -> int:
    given = _given()
    try:
        folder = library(given.pypto) if given.pypto or not given.fit else None
        found, words = rows(list(cases()), folder, fits(given.fit) if given.fit else {}), judged(asked_for()["judged"])
        if given.page:
            put(given.page, found, words)
    except TileError as error:
        print(error, file=sys.stderr)
        return 2
    print(shown(found, words))
    if not folder:
        print(f"pypto's library was not asked: {INSTALL}")
    if not given.fit:
        print(f"the fitted table was not asked: {PUBLIC}")
    if given.csv:
        write_csv(given.csv, found, words)
    return 1 if unjudged(found, words) or idle(found, words) else 0


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judges", description=__doc__)
    parser.add_argument("--pypto", type=Path, help="a folder in which pypto is installed; this Python's own pypto otherwise")
    parser.add_argument("--fit", type=Path, help=PUBLIC)
    parser.add_argument("--csv", type=Path, help="where all rows go")
    parser.add_argument("--page", type=Path, help="a page whose block between the comments of judges becomes the differences")
    return parser.parse_args()


def shown(found: Sequence[Row], words: Sequence[Judged]) -> str:
    """The table of all rows, and what is left to judge."""
    head = ("instruction", "type", "size", "when", "ours", *(h for j in JUDGES for h in (j, "ratio", "")))
    lines = [table([_line(row, words) for row in found], head, right=(2, 4, 5, 6, 8, 9)), ""]
    lines += [f"no price by either judge: {name} ({why})" for name, why in unpriced().items()]
    lines += ["", counted(found, words)]
    lines += [f"NOT JUDGED: {_named(row)}, {judge}, ratio {row.ratio(judge):.2f}" for row, judge in unjudged(found, words)]
    lines += [f"JUDGED, but there is no such difference: {', '.join(w.of)}, {w.judge}: {w.why}" for w in idle(found, words)]
    return "\n".join(lines)


def _named(row: Row) -> str:
    return f"{row.case.name} {row.case.dtype} {row.case.size} {row.case.when}"


def _line(row: Row, words: Sequence[Judged]) -> tuple[str, ...]:
    case = row.case
    beside = [cell for judge in JUDGES for cell in (*(p or "-" for p in prices(row, judge)), told(row, judge, words))]
    return (case.name, case.dtype, str(case.size), case.when, f"{case.ours:.0f}", *beside)


if __name__ == "__main__":
    sys.exit(main())
