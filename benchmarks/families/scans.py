"""Scans: linear attention, delta rule, state spaces, cumulative sums."""

from __future__ import annotations

from benchmarks.families.example import Example

EXAMPLES: list[Example] = []
