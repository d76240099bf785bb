"""Elementwise kernels, softmax, norms and rotary embedding."""

from __future__ import annotations

from benchmarks.families.example import Example

EXAMPLES: list[Example] = []
