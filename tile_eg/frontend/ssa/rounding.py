"""A constant as an element type holds it."""

from __future__ import annotations

import struct
from math import copysign, inf, isfinite
from typing import Any

from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.passed import NeedsNumber, Passed
from tile_eg.ops.types import BF16, F16, F32, NARROW, WHOLE, DType


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


def constant_as(value: Any, of: DType | None, to: DType) -> Any:
    """A constant of one element type as another one takes it; None for what follows from numbers of a call, where it is cast as
    tiles are. NeedsNumber where no instruction casts such."""
    if not isinstance(value, Passed):
        return rounded(value, of)
    if (of, to) == (F16, F32):
        return None
    if (of, to) != (F32, F16):
        raise NeedsNumber(f"{value}, which each call tells, is held in {of} and read in {to}")
    return value
