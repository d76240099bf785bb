"""What sizes of blocks are found for."""

from tile_eg.absent import refused
from tile_eg.carver.arch import driver
from tile_eg.carver.arch.ascend import Ascend

__getattr__ = refused(__name__, {}, "tile_eg.carver.arch.Ascend, of the chip that kernels are compiled for")
__all__ = ["Ascend", "driver"]
