"""What a run in the simulator may use."""

from __future__ import annotations

from tile_eg.errors import TileError
from tile_eg.ops.records import record

PATIENCE, LEAST_PATIENCE = 10, 60


@record
class Limits:
    """What a run may use: seconds of processor time, and bytes of memory. One that waits instead of computing ends after
    `patience` seconds on the clock.

    Of tensors and workspace counts what is touched, in pieces of 8 KiB, with the simulator's notes on it: 1.6 bytes for each,
    3.6 where the order of instructions is varied. What a file's own main allocates may take as much again.
    TileError for limits that are no numbers above 0.
    """

    seconds: float = 60
    bytes: int = 8 << 30

    def __post_init__(self) -> None:
        if not _above_zero(self.seconds):
            raise TileError(f"`seconds` is a number above 0, not {self.seconds!r}")
        if not _above_zero(self.bytes) or not isinstance(self.bytes, int):
            raise TileError(f"`memory` is a whole number of bytes above 0, not {self.bytes!r}", help="8 GiB are 8 << 30")

    @property
    def patience(self) -> float:
        return max(PATIENCE * self.seconds, LEAST_PATIENCE)


def _above_zero(n: object) -> bool:
    return isinstance(n, int | float) and not isinstance(n, bool) and n > 0


USUAL = Limits()
"""What a run may use where nothing else is said."""
CALL = Limits(seconds=600)
"""What a call of a kernel in Python may use: its arrays may be as large as an NPU's."""
