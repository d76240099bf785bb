"""What a watched text tells while it runs: a record behind each instruction, with what its result holds (runtime/watch.cpp)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from tile_eg.ops.records import record
from tile_eg.simulator.image import nameless_file

_HEAD = struct.Struct("=5q")
_STOPPED = -1
PLACES, ALL = -1, -2


@record
class Record:
    """What was told behind one instruction: the number of its place in the text, the block of the launch, its core (0: cube, else
    vector), the values of index expressions, and where the bytes of its result lie in the file."""

    id: int
    block: int
    core: int
    values: tuple[int, ...]
    at: int
    bytes: int


class Watch:
    """The file of a watched run; close it by `with`. `tile` is the tile of the grid that is watched; `ALL`: every one; `PLACES`:
    every one, without what results hold."""

    def __init__(self, tile: int = PLACES) -> None:
        self.tile, self.fd, self.stopped = tile, nameless_file(), False

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def options(self) -> list[str]:
        """What the simulator's executable is told."""
        return [f"watch={self.fd}:{self.tile}"]

    def records(self) -> Iterator[Record]:
        """The records in the order in which the instructions ran. `stopped` is then set where the file had no room for more."""
        at, end = 0, os.fstat(self.fd).st_size
        while at + _HEAD.size <= end:
            id, block, core, count, bytes = _HEAD.unpack(os.pread(self.fd, _HEAD.size, at))
            if id == _STOPPED:
                self.stopped = True
                return
            values = struct.unpack(f"={count}q", os.pread(self.fd, 8 * count, at + _HEAD.size))
            at += _HEAD.size + 8 * count
            yield Record(id, block, core, values, at, bytes)
            at += bytes

    def data(self, record: Record) -> bytes:
        """What the result held."""
        return os.pread(self.fd, record.bytes, record.at)
