"""A chip as AscendNPU-IR's host code asks for it."""

from tile_eg.chips.arch import AscendArch, get_arch_obj, get_ascend_device_name, is_ascend_arch

__all__ = ["AscendArch", "get_arch_obj", "get_ascend_device_name", "is_ascend_arch"]
