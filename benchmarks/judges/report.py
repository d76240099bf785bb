"""Our price beside the judges', and which differences are settled, marked, or neither."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.judges.cases import ALONE, Case
from benchmarks.judges.judges import Fit, asked

LIBRARY, FIT = "library", "fitted"
JUDGES = (LIBRARY, FIT)
LIMIT = 0.15
ROUNDING = 0.005
"""Half of the last digit of a ratio in the file of what was judged."""


@dataclass(frozen=True)
class Row:
    """A case with what each judge says of it; a judge that has no price for it is absent."""

    case: Case
    judges: Mapping[str, float]

    def ratio(self, judge: str) -> float | None:
        """Our cycles to the judge's."""
        return self.case.ours / self.judges[judge] if judge in self.judges else None


@dataclass(frozen=True)
class Judged:
    """What became of a difference: for which instructions, types and whose price, how far apart (`low` to `high`, ours to the
    judge's), and `why` ours stays. `by` names the sources that settle it; where there is none it is open."""

    of: tuple[str, ...]
    judge: str
    low: float
    high: float
    why: str
    by: str = ""
    types: tuple[str, ...] = ()
    when: str = ""

    def holds(self, row: Row, judge: str) -> bool:
        """Whether this is the word on that difference."""
        case, ratio = row.case, row.ratio(judge)
        named = judge == self.judge and case.name in self.of and self.when in ("", case.when)
        typed = not self.types or case.dtype in self.types
        return bool(named and typed and ratio and self.low - ROUNDING <= ratio <= self.high + ROUNDING)


def judged(tables: Iterable[Mapping[str, Any]]) -> list[Judged]:
    """The tables [[judged]] as data."""
    return [_judged(**table) for table in tables]


def _judged(of: Sequence[str], ratio: Sequence[float], types: Sequence[str] = (), **rest: str) -> Judged:
    low, high = ratio
    return Judged(of=tuple(of), low=low, high=high, types=tuple(types), **rest)


def rows(cases: Sequence[Case], folder: Path | None, fits: Mapping[str, Fit]) -> list[Row]:
    """All cases before the judges that are there."""
    library = _by_library(cases, folder) if folder else {}
    found = []
    for case in cases:
        said = {LIBRARY: library.get(case), FIT: _by_fit(case, fits)}
        found.append(Row(case, {judge: price for judge, price in said.items() if price is not None}))
    return found


def _by_library(cases: Sequence[Case], folder: Path) -> dict[Case, float]:
    known = [case for case in cases if case.text]
    answers = asked(folder, [text for case in known for text in case.texts])
    pairs = zip(known, answers[::2], answers[1::2], strict=True)
    return {case: cycles - (before or 0.0) for case, before, cycles in pairs if cycles is not None}


def _by_fit(case: Case, fits: Mapping[str, Fit]) -> float | None:
    return fits[case.fit].cycles(case.fit, case.dtype, case.fit_bytes) if case.fit in fits and case.when == ALONE else None


def far(row: Row, judge: str) -> bool:
    """More than 15 % apart, either way."""
    ratio = row.ratio(judge)
    return ratio is not None and max(ratio, 1 / ratio) > 1 + LIMIT


def differences(found: Iterable[Row]) -> Iterator[tuple[Row, str]]:
    """Rows and the judges that they are far from."""
    return ((row, judge) for row in found for judge in JUDGES if far(row, judge))


def word(row: Row, judge: str, words: Iterable[Judged]) -> Judged | None:
    """What was judged of a difference, if anything."""
    return next((w for w in words if w.holds(row, judge)), None)


def unjudged(found: Sequence[Row], words: Sequence[Judged]) -> list[tuple[Row, str]]:
    """Differences that nothing is said of."""
    return [(row, judge) for row, judge in differences(found) if word(row, judge, words) is None]


def idle(found: Sequence[Row], words: Sequence[Judged]) -> list[Judged]:
    """What is said of no difference any more, among the judges that were asked."""
    there = {judge for row in found for judge in row.judges}
    used = {id(word(row, judge, words)) for row, judge in differences(found)}
    return [w for w in words if w.judge in there and id(w) not in used]


def write_csv(out: Path, found: Iterable[Row], words: Sequence[Judged]) -> None:
    """A line for each case: our cycles, each judge's, the ratios, and what was judged."""
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        heads = (f"{judge}{of}" for judge in JUDGES for of in ("", " ratio", " judged"))
        writer.writerow(("instruction", "type", "size", "when", "ours", *heads))
        for row in found:
            case = row.case
            beside = [cell for judge in JUDGES for cell in (*prices(row, judge), told(row, judge, words))]
            writer.writerow((case.name, case.dtype, case.size, case.when, f"{case.ours:g}", *beside))


def prices(row: Row, judge: str) -> tuple[str, str]:
    """The judge's cycles and the ratio of ours to them; empty where it has none."""
    ratio = row.ratio(judge)
    return (f"{row.judges[judge]:g}", f"{ratio:.2f}") if ratio else ("", "")


def told(row: Row, judge: str, words: Sequence[Judged]) -> str:
    """"" within 15 %, else "settled", "open" or "NOT JUDGED"."""
    if not far(row, judge):
        return ""
    said = word(row, judge, words)
    return "NOT JUDGED" if said is None else "settled" if said.by else "open"


def counted(found: Sequence[Row], words: Sequence[Judged]) -> str:
    """How many comparisons there are, and what became of those that are far apart."""
    compared = sum(len(row.judges) for row in found)
    said = [told(row, judge, words) for row, judge in differences(found)]
    return (
        f"{compared} prices compared, {compared - len(said)} within 15 %; of the others {said.count('settled')} are settled by a "
        f"source, {said.count('open')} open, {said.count('NOT JUDGED')} not judged"
    )
