"""The planned pieces of memories in which a program keeps tiles."""

from __future__ import annotations

from tile_eg.ir.machine import scale_bytes
from tile_eg.ops.records import record
from tile_eg.ops.types import DType, Level


@record
class Buffer:
    """A planned piece of one memory.

    `rows` x `cols` is the capacity of one slot in elements. `layout` is nd (UB, WS: rows `pitch` elements apart), nz (L1, L0C),
    zz (L0A) or zn (L0B): fractals of 16 x 32 bytes (L0C: 16 x 16 elements), every dimension padded to its fractal; pairs (scales
    in L1): fractals of 16 rows and two scales. Of numbers of 4 bits, `cols` counts bytes (L0B: rows). `addresses`
    gives the byte address of each slot (WS: in the workspace of one block); empty before memory planning.
    `halved` says that each of the two vector cores holds one half, so that rows and cols are already those of a half.
    """

    name: str
    level: Level
    dtype: DType
    rows: int
    cols: int
    pitch: int
    layout: str = "nd"
    slots: int = 1
    addresses: tuple[int, ...] = ()
    halved: bool = False

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot, its padding included."""
        if self.layout == "nd":
            return -(-self.rows * self.pitch * self.dtype.bytes // 32) * 32
        if self.layout == "pairs":
            return scale_bytes(self.rows, self.cols)
        c0 = 16 if self.level is Level.L0C else 32 // self.dtype.bytes
        up = lambda n, m: -(-n // m) * m  # noqa: E731
        return up(self.rows, max(16, c0)) * up(self.cols, max(16, c0)) * self.dtype.bytes
