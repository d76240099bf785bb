"""TileLang's `utils`."""

from tile_eg.utils.npu_arch import AscendArch, get_arch_obj, get_ascend_device_name, is_ascend_arch
from tile_eg.utils.npu_utils import NPUUtils

__all__ = ["AscendArch", "NPUUtils", "get_arch_obj", "get_ascend_device_name", "is_ascend_arch"]
