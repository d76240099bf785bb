"""Whether the chip that is compiled for has a kernel's element types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_eg.chips import Chip, known_chips, load_chip
from tile_eg.errors import Span
from tile_eg.ops.types import NARROW


def check_chip_types(tree: Any, chip: Chip, spans: Mapping[str, Span | None] | None = None) -> None:
    """TileError where nodes of a kernel have a float of 8 bits and the chip has none; only that reads other chips' tables."""
    from tile_eg.frontend.checks.chip_types import check_types

    check_types(tree, chip.name, chip.cube.macs, _with_small_floats, spans)


def _with_small_floats() -> list[str]:
    chips = map(load_chip, known_chips(None))
    return [c.name for c in chips if all(d.name in c.cube.macs for d in NARROW)]
