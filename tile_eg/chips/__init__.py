"""What is known of each chip: one TOML file a chip, every number with its source, read into typed data by `load_chip`."""

from tile_eg.chips.loader import DEFAULT_CHIP, OWN, chip_of, known_chips, load_chip, tables_of
from tile_eg.chips.model import Chip, Memory, Path, VectorCost

__all__ = [
    "DEFAULT_CHIP", "OWN", "Chip", "Memory", "Path", "VectorCost", "chip_of", "known_chips", "load_chip", "tables_of",
]  # fmt: skip
