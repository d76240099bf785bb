"""Prints every row with what the engine predicts, mean errors, and the order of before and after. Exit code 1 past a limit.

`--csv FILE` takes the rows that `tile-eg bench --csv` wrote instead, and `--table OUT` makes a cost model of them. `--catlass
CHECKOUT` takes texts with published times instead, which run in the simulator.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from benchmarks.validate.rows import Row, pairs, rows
from tile_eg.errors import TileError
from tile_eg.report.text import duration, table

LIMITS = {"GEMM": 0.10, "copy": 0.10, "Add": 0.10, "through UB": 0.10, "flash attention": 0.10, "950": 0.10}
ORDER = 0.95
APART = 1.02


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--catlass", type=Path, metavar="CHECKOUT")
    given = parser.parse_args()
    if given.catlass:
        return _texts(given.catlass)
    return _own(given.csv, given.table) if given.csv else _published()


def _own(path: Path, out: Path | None) -> int:
    from benchmarks.validate.own import learn, own_rows, shown

    rows = own_rows(path)
    if not rows:
        print(f"{path} has no measured row: tile-eg bench --device npu --csv {path}")
        return 1
    print(shown(rows))
    if out:
        learn(rows, out)
    return 0


def _texts(checkout: Path) -> int:
    from benchmarks.validate.replayed import shown

    try:
        print(shown(checkout))
    except TileError as error:
        print(error)
        return 1
    return 0


def _published() -> int:
    print(
        table([_line(r) for r in rows()], ("kernel", "row", "chip", "measured", "predicted", "error", "row is"), right=(3, 4, 5))
    )
    print()
    print(
        table(
            [_family(f) for f in LIMITS],
            ("kernel", "rows", "mean error", "fitted", "held out", "family left out", "limit"),
            right=(1, 2, 3, 4, 5, 6),
        )
    )
    print()
    print(_handover())
    for title, both in (("", pairs()), (" of those more than 2 % apart", apart())):
        wrong = "; ".join(f"{a.name} / {b.name}" for a, b in both if not in_order(a, b))
        print(f"before and after in the right order{title}: {ordered(both):.0%} of {len(both)}{': not ' * bool(wrong)}{wrong}")
    good = ordered(apart()) >= ORDER and all(_error(_of(f)) <= limit for f, limit in LIMITS.items())
    return 0 if good else 1


def apart() -> list[tuple[Row, Row]]:
    """The pairs whose second one took more than 2 % less than the first."""
    return [(a, b) for a, b in pairs() if a.measured > APART * b.measured]


def in_order(before: Row, after: Row) -> bool:
    return before.predicted > after.predicted


def ordered(both: Sequence[tuple[Row, Row]]) -> float:
    """The share of pairs that are predicted in the order in which they were measured."""
    return mean(in_order(a, b) for a, b in both)


def _of(family: str, used: str = "") -> list[Row]:
    return [r for r in rows() if r.family == family and used in ("", r.used)]


def _error(found: Sequence[Row]) -> float:
    return mean(abs(r.error) for r in found)


def _line(r: Row) -> tuple[str, ...]:
    times = duration(r.measured * 1e-6), duration(r.predicted * 1e-6)
    return (r.family, r.name, r.chip, *times, f"{r.error:+.1%}", r.used)


def _family(family: str) -> tuple[str, ...]:
    each = [_of(family), _of(family, "fit"), _of(family, "held out")]
    left_out = mean(abs(r.left_out) for r in each[0])
    return (family, str(len(each[0])), *(f"{_error(e):.1%}" for e in each), f"{left_out:.1%}", f"{LIMITS[family]:.0%}")


def _handover() -> str:
    """What the latency between cores, which is not published, makes of the mean error of the mixed kernels."""
    mixed = [(r, r.handover) for r in rows() if r.handover]
    low, high = (mean(abs(ends[i] / r.measured - 1) for r, ends in mixed) for i in (0, 1))
    sync = mixed[0][0].machine.sync
    ends = f"{sync.cross_latency_low:g} cycles: {low:.1%}, at {sync.cross_latency_high:g}: {high:.1%}"
    spread = max(ends[1] / ends[0] - 1 for _, ends in mixed)
    return f"flash attention over the latency between cores: mean error at {ends}; a row moves by {spread:.0%} at most"


if __name__ == "__main__":
    sys.exit(main())
