"""Compiles a kernel without each rule that its schedule rests on, and writes docs/rules.md. Takes a minute or two."""

from __future__ import annotations

from time import perf_counter

from benchmarks.rules.kernels import SHOWN_BY, kernels
from benchmarks.rules.needed import Search, choices
from benchmarks.rules.page import PAGE, page_of, rows_of

start = perf_counter()
found = list(Search(kernels()).witnesses(dict(rows_of(PAGE.read_text())) | SHOWN_BY))
PAGE.write_text(page_of(found))
print(f"wrote {PAGE.relative_to(PAGE.parents[1])} in {perf_counter() - start:.0f} s")
if unshown := sorted(set(choices()) - {w.rule for w in found}):
    raise SystemExit(f"no kernel needs {', '.join(unshown)}: drop them, or add a kernel to benchmarks/rules/kernels.py")
