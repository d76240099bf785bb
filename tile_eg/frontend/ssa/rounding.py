"""A constant as an element type holds it."""

from __future__ import annotations

import struct
from math import copysign, inf, isfinite

from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ops.types import BF16, F16, NARROW, WHOLE, DType


def rounded(value: float, dtype: DType | None) -> float:
    """The nearest value that an element type can hold, ties to even; infinity beyond the largest one, of 8 bits the largest."""
    if dtype in WHOLE:
        return float(value)
    if dtype in NARROW:
        import numpy as np

        from tile_eg.ir.arithmetic import cast

        return float(cast(np.array([value], np.float32), numpy_dtype(dtype))[0])
    if not isfinite(value):
        return value
    try:
        if dtype == F16:
            return struct.unpack("e", struct.pack("e", value))[0]
        single = struct.pack("f", value)
    except OverflowError:
        return copysign(inf, value)
    if dtype == BF16:
        bits = struct.unpack("I", single)[0]
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
        single = struct.pack("I", bits)
    return struct.unpack("f", single)[0]
