"""What the numbers of a chip's tables rest on: published, fitted or assumed; and the chip at both ends of what is assumed.

Each table lists the keys that were `fitted`, and those that are `assumed` with the range in which they may lie. All its other
numbers are published; its `source` says where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tile_eg.ops.records import record

KEYS = ("fitted", "assumed")
"""Keys of a table that say what its numbers rest on."""
RATES = frozenset(
    ("peak", "shared", "miss_peak", "same_rate", "hbm")
    + ("hbm_read", "hbm_write", "l2_written", "reads_least", "l2_read", "l2_write", "queue_depth")
)
"""What makes a kernel quicker the larger it is; everything else is a cost."""
FIXED = ("memory", "rows")
"""Tables that say what fits and how rows are cut: nobody times with other values."""
COUNTS = frozenset({"request", "queue_depth"})
"""What is a whole number of bytes or instructions: no constant to be varied by a factor."""


@record
class Mark:
    """One number of a chip's tables. `kind` is "published", "fitted" or "assumed"; the range is that of an assumed one."""

    name: str
    kind: str
    value: Any
    source: str
    low: Any = None
    high: Any = None


def marks(tables: Mapping[str, Any]) -> list[Mark]:
    """Every number of a chip's tables, by names like "path.gm_to_l1.issue"."""
    return list(_marks(tables, "", {}, {}))


def open_constants(marked: Sequence[Mark]) -> dict[str, Mark]:
    """Those that measurements may move, by name: fitted or assumed, above 0, and a time or a rate."""
    return {m.name: m for m in marked if m.kind != "published" and _varies(m)}


def _varies(m: Mark) -> bool:
    first, *_, last = m.name.split(".")
    return first not in FIXED and last not in COUNTS and not isinstance(m.value, list) and m.value > 0


def _marks(table: Mapping[str, Any], name: str, fitted: Any, assumed: Any, source: str = "") -> Iterator[Mark]:
    fitted, assumed, source = table.get("fitted", fitted), table.get("assumed", assumed), table.get("source", source)
    for key, value in table.items():
        if isinstance(value, Mapping) and key not in KEYS:
            inner = _inner(value)
            yield from _marks(value, f"{name}{key}.", fitted if inner else (), assumed if inner else {}, source)
        elif key not in KEYS and _is_number(value):
            low, high = assumed.get(key, (None, None))
            kind = "assumed" if key in assumed else "fitted" if key in fitted else "published"
            yield Mark(f"{name}{key}", kind, value, source, low, high)


def _inner(table: Mapping[str, Any]) -> bool:
    """Whether it is a part of the table around it, and not one with a source of its own."""
    return "source" not in table and not any(isinstance(v, Mapping) for v in table.values())


def _is_number(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_number(v) for v in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def at_end(tables: Mapping[str, Any], quick: bool) -> dict[str, Any]:
    """The tables with everything that is assumed at the end of its range at which kernels are quick, or slow."""
    return {k: v if k in FIXED or not isinstance(v, Mapping) else _at_end(v, quick, {}) for k, v in tables.items()}


def _at_end(table: Mapping[str, Any], quick: bool, assumed: Mapping[str, Any]) -> dict[str, Any]:
    assumed = table.get("assumed", assumed if _inner(table) else {})
    return {k: _end(k, v, quick, assumed) for k, v in table.items()}


def _end(key: str, value: Any, quick: bool, assumed: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping) and key not in KEYS:
        return _at_end(value, quick, assumed)
    return assumed[key][quick == (key in RATES)] if key in assumed else value


def plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """The tables without their marks."""
    return {k: plain(v) if isinstance(v, Mapping) else v for k, v in table.items() if k not in KEYS}
