"""Selection: indexer, top-k, arg-reductions, sorting."""

from __future__ import annotations

from benchmarks.families.example import Example

EXAMPLES: list[Example] = []
