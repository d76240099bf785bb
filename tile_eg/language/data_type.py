"""Names of dtypes that tell their bits: `DataType("float16").bits`."""

from __future__ import annotations

import re
from typing import Any, Self

from tile_eg.errors import TileError

_SHORT = {
    "float": "float32", "half": "float16", "double": "float64", "int": "int32", "uint": "uint32", "short": "int16",
    "long": "int64", "ulong": "uint64",
}  # fmt: skip
"""Other names of dtypes."""
_BITS = {"bool": "1", "tfloat32": "32"}
_NAME = re.compile(r"(?P<kind>float|bfloat|int|uint|e\dm\d_float|float[48]_e\dm\d\w*?)(?P<bits>\d*)(?:x(?P<lanes>\d+))?")


class DataType(str):
    """A dtype's name with `bits` of an element, `itemsize` in bytes (at least 1) and `lanes`; made of a name, of a dtype of torch
    or NumPy, or of Python's int, float or bool. TileError for any other name.

    It knows all of TileLang's dtypes, also those that kernels do not compute with here.
    """

    bits: int
    lanes: int

    def __new__(cls, name: object) -> Self:
        text = name.__name__ if isinstance(name, type) else str(name).removeprefix("torch.")
        text = _SHORT.get(text, text)
        found = _NAME.fullmatch(text)
        bits = _BITS.get(text) or (found and (found["kind"][5:6] if found["kind"][5:7] in ("4_", "8_") else found["bits"]))
        if not bits:
            raise TileError(f"{text!r} is not a dtype", help="float16, bfloat16, float32, int8, int32, uint8 are")
        made = super().__new__(cls, text)
        made.bits, made.lanes = int(bits), int(found["lanes"] or 1) if found else 1
        return made

    @property
    def itemsize(self) -> int:
        return max(1, self.bits * self.lanes // 8)

    @property
    def bytes(self) -> int:
        """As `itemsize`."""
        return self.itemsize

    def as_torch(self) -> Any:
        """torch's dtype of this name. TileError where torch has none."""
        import torch

        found = getattr(torch, "float8_e4m3fn" if self == "float8_e4m3" else self, None)
        if not isinstance(found, torch.dtype):
            raise TileError(f"torch has no dtype {self}")
        return found
