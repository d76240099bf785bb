"""The kernels that people come for, by family: `EXAMPLES` is the one list of which tests, targets and pages are made."""

from __future__ import annotations

from benchmarks.families import attention, layout, products, scans, selection, vector
from benchmarks.families.example import Example

EXAMPLES: list[Example] = [e for topic in (vector, products, attention, selection, scans, layout) for e in topic.EXAMPLES]


def families() -> dict[str, list[Example]]:
    """The examples by their family, in the order of the list."""
    found: dict[str, list[Example]] = {}
    for e in EXAMPLES:
        found.setdefault(e.family, []).append(e)
    return found
