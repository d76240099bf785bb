"""TileLang's names of platforms."""

from __future__ import annotations

import sys
from typing import Any

from tile_eg.jit.switches import PLATFORMS

_DEVICES = (("Ascend950", "A5"), ("Ascend910_93", "A3"), ("Ascend910B", "A2"))
"""How the names of devices begin, as torch_npu gives them, and their platforms."""


def determine_platform(platform: str = "auto") -> str:
    """The platform itself where it is named; for "auto" that of the NPU that torch sees, and A3 where it sees none.

    ValueError for another name.
    """
    if platform in PLATFORMS:
        return platform
    if platform != "auto":
        raise ValueError(f"platform {platform!r} is unknown: there are auto, {', '.join(PLATFORMS)}")
    npu = getattr(sys.modules.get("torch"), "npu", None)
    return _of_device(npu) if npu is not None and npu.is_available() else "A3"


def _of_device(npu: Any) -> str:
    name = str(npu.get_device_properties(npu.current_device()).name)
    return next((platform for start, platform in _DEVICES if name.startswith(start)), "A3")
