"""TileLang's `language.fp8`: which floats of 8 bits the machine has."""

from __future__ import annotations

from typing import Any

from tile_eg.errors import TileError
from tile_eg.language.kernels import ElementType

_NAMES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def determine_fp8_type(fp8_format: str = "e4m3") -> ElementType:
    """The dtype of floats of 8 bits: "e4m3" or "e5m2". They are on the 950. TileError for another format."""
    if fp8_format not in _NAMES:
        raise TileError(f"floats of 8 bits are of e4m3 or e5m2, not {fp8_format!r}")
    return ElementType(_NAMES[fp8_format])


def determine_torch_fp8_type(fp8_format: str = "e4m3") -> Any:
    """The same as torch's dtype."""
    return determine_fp8_type(fp8_format).as_torch()
