"""Judges the rule that is named; or looks for a kernel that needs each rule, in two processes, and writes docs/rules.md."""

from __future__ import annotations

import sys
from time import perf_counter

from benchmarks.rules.judged import judged
from benchmarks.rules.kernels import SHOWN_BY
from benchmarks.rules.needed import choices
from benchmarks.rules.page import PAGE, page_of, rows_of
from benchmarks.rules.together import witnesses


def write_page() -> None:
    """Ends with an error where a rule has no kernel."""
    start = perf_counter()
    found = witnesses(dict(rows_of(PAGE.read_text())) | SHOWN_BY)
    PAGE.write_text(page_of(found))
    print(f"wrote {PAGE.relative_to(PAGE.parents[1])} in {perf_counter() - start:.0f} s")
    if unshown := sorted(set(choices()) - {w.rule for w in found}):
        raise SystemExit(f"no kernel needs {', '.join(unshown)}: drop them, or add a kernel to benchmarks/rules/texts.py")


if __name__ == "__main__":
    sys.exit(judged(sys.argv[1]) if len(sys.argv) > 1 else write_page())
