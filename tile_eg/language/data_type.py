"""Names of dtypes that tell their bits: `DataType("float16").bits`."""

from __future__ import annotations

import re

from tile_eg.errors import TileError

_SHORT = {"float": "float32", "half": "float16", "double": "float64", "int": "int32", "uint": "uint32", "bool": "uint1"}
_NAME = re.compile(r"(?P<kind>float|bfloat|int|uint|e\dm\d_float|float8_e\dm\d\w*)(?P<bits>\d*)(?:x(?P<lanes>\d+))?")


class DataType(str):
    """A dtype's name with `bits` of an element, `itemsize` in bytes (at least 1) and `lanes`. TileError for any other name.

    It knows all of TileLang's dtypes, also those that kernels do not compute with here.
    """

    bits: int
    lanes: int

    def __new__(cls, name: object) -> DataType:
        text = str(name)
        found = _NAME.fullmatch(_SHORT.get(text, text))
        bits = "8" if found and found["kind"].startswith("float8_") else found and found["bits"]
        if not found or not bits:
            raise TileError(f"{text!r} is not a dtype", help="float16, bfloat16, float32, int8, int32, uint8 are")
        made = super().__new__(cls, text)
        made.bits, made.lanes = int(bits), int(found["lanes"] or 1)
        return made

    @property
    def itemsize(self) -> int:
        return max(1, self.bits * self.lanes // 8)
