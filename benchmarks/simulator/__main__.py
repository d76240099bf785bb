"""Prints a table: processor time of simulated runs, beside NumPy's for the same.

The ratios say the same on another machine, or a busy one; the seconds do not. Exit code 1 if a run takes longer on the clock than
its limit, which is for two quiet cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.simulator.measured import Case, Measured, cases, measured
from tile_eg.report.text import table

HEADS = ("kernel", "processor", "NumPy", "ratio", "on the clock", "limit")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator")
    parser.add_argument("--scale", type=int, default=1, help="divide the lengths by it: a quick look")
    done = [(case, measured(case)) for case in cases(parser.parse_args().scale)]
    print(page(done))
    return int(any(m.seconds > case.limit for case, m in done))


def page(done: Sequence[tuple[Case, Measured]]) -> str:
    """The table of these runs."""
    return table([_row(case, m) for case, m in done], HEADS, right=tuple(range(1, len(HEADS))))


def _row(case: Case, m: Measured) -> tuple[str, ...]:
    beside = f"{m.processor / m.numpy:.1f}x" if m.numpy else "-"
    clock = f"{m.seconds:.2f} s", f"{case.limit:g} s"
    return case.name, f"{m.processor:.2f} s", f"{m.numpy:.2f} s", beside, *clock


if __name__ == "__main__":
    sys.exit(main())
