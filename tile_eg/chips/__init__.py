"""What is known of each chip: one TOML file a chip, every number with its source, read into typed data by `load_chip`."""

from tile_eg.chips.loader import DEFAULT_CHIP, known_chips, load_chip
from tile_eg.chips.model import Chip, Memory, Path, VectorCost

__all__ = ["DEFAULT_CHIP", "Chip", "Memory", "Path", "VectorCost", "known_chips", "load_chip"]
