"""Transforms of layout and neighbourhood: Hadamard, transposes, stencils, convolutions."""

from __future__ import annotations

from benchmarks.families.example import Example

EXAMPLES: list[Example] = []
