"""Prints the table of `compared`."""

from __future__ import annotations

import argparse

from benchmarks.triton_ascend.compared import PYTHON, Row, interpreter, rows
from tile_eg.report.text import table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.triton_ascend")
    parser.add_argument("--python", help=f"an interpreter that has triton-ascend and ascendnpu-ir (or the variable {PYTHON})")
    print(compared(parser.parse_args().python))


def compared(python: str | None = None) -> str:
    """The table, or ours alone with the reason."""
    there, why = interpreter(python)
    head = "Processor seconds, Triton's as far as scheduled HIVM:" if there else f"Processor seconds; none of Triton's, as {why}:"
    cells = table(map(_cells, rows(there)), ("what", "ours", "aim", "Triton", "ratio"), right=(1, 2, 3, 4))
    return f"{head}\n{cells}"


def _cells(row: Row) -> tuple[str, ...]:
    ours, theirs = row.ours(), row.theirs() if row.theirs else None
    beside = (f"{theirs:.2f}", f"{ours / theirs:.1f}x") if theirs else ("-", "-")
    return row.name, f"{ours:.2f}", f"{row.aim:g}" if row.aim else "-", *beside


if __name__ == "__main__":
    main()
