"""An Ascend chip as TileLang's `carver` names it."""

from __future__ import annotations

from tile_eg.chips import DEFAULT_CHIP, Chip, load_chip


class Ascend:
    """A chip by its name; 910B2 where none is given. TileError for an unknown one."""

    def __init__(self, target: str | None = None) -> None:
        self.chip: Chip = load_chip(target or DEFAULT_CHIP)
