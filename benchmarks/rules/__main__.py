"""Compiles every kernel without each rule that its schedule rests on, and writes docs/rules.md. Takes minutes."""

from __future__ import annotations

from benchmarks.rules.kernels import kernels
from benchmarks.rules.needed import witnesses
from benchmarks.rules.page import PAGE, page_of

PAGE.write_text(page_of(witnesses(kernels())))
print(f"wrote {PAGE.relative_to(PAGE.parents[1])}")
