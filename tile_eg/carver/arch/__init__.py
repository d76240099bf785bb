"""What sizes of blocks are found for."""

from tile_eg.carver.arch import driver
from tile_eg.carver.arch.ascend import Ascend

__all__ = ["Ascend", "driver"]
