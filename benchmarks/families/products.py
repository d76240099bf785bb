"""Products: plain, with an epilogue, quantised, of experts."""

from __future__ import annotations

from benchmarks.families.example import Example

EXAMPLES: list[Example] = []
