"""Attention: forward, backward, decoding, sparse."""

from __future__ import annotations

from benchmarks.families.example import Example

EXAMPLES: list[Example] = []
