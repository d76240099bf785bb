"""The file in which tensors go to the simulator and come back: as long as GM, with room taken only where it is not zero.

The simulator maps it, so a page of a tensor costs memory when the kernel touches it.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from tile_eg.disk_cache import why_no_room
from tile_eg.errors import TileError

GAP, GRAIN = 4096, 65536
"""Bytes between two tensors at least, so that an overrun is not another tensor; a multiple of every page size that begins one."""
PIECE = 1 << 20


class Image:
    """Room for tensors of these sizes in bytes, one behind the other. `fd` is the file's descriptor; close it by `with`.

    TileError where the system gives no file of that length, or no room for what is put into it.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.begins: list[int] = []
        end = GAP
        for size in sizes:
            self.begins.append(-(-end // GRAIN) * GRAIN)
            end = self.begins[-1] + size + GAP
        self.length = -(-end // GRAIN) * GRAIN
        self.fd = nameless_file()
        with self._room():
            os.truncate(self.fd, self.length)

    def __enter__(self) -> Image:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def put(self, number: int, array: np.ndarray) -> None:
        """Fills a tensor's room. Stretches of zeros stay holes."""
        flat = array.reshape(-1).view(np.uint8)
        for at in range(0, flat.size, PIECE):
            piece = flat[at : at + PIECE]
            if piece.any():
                with self._room():
                    _write(self.fd, piece.data, self.begins[number] + at)

    def get(self, number: int, like: np.ndarray) -> np.ndarray:
        """The array of a tensor, of the shape and element type of another one."""
        array = np.zeros(like.shape, like.dtype)
        flat, begin = array.reshape(-1).view(np.uint8).data, self.begins[number]
        for first, last in self._held(begin, begin + len(flat)):
            _read(self.fd, flat[first - begin : last - begin], first)
        return array

    @contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = why_no_room(error)
            message = f"the tensors cannot go to the simulator, in a file of {self.length} bytes: {why}"
            raise (TileError(message, help="smaller sizes, or more room for files") if why else error) from None

    def _held(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """The stretches between two places that are no holes; all of it where the system cannot tell."""
        while begin < end:
            try:
                begin = os.lseek(self.fd, begin, os.SEEK_DATA)
                last = min(end, os.lseek(self.fd, begin, os.SEEK_HOLE))
            except OSError as error:
                if error.errno == errno.ENXIO:  # there is nothing behind
                    return
                last = end
            if begin < end:
                yield begin, last
            begin = last


def nameless_file() -> int:
    """In memory where the system has that, else in the folder for temporary files."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("tile_eg")
    fd, name = tempfile.mkstemp()
    os.unlink(name)
    return fd


def _read(fd: int, room: memoryview, at: int) -> None:
    while room:
        done = os.preadv(fd, [room[:PIECE]], at)
        room, at = room[done:], at + done


def _write(fd: int, data: memoryview, at: int) -> None:
    while data:
        done = os.pwrite(fd, data, at)
        data, at = data[done:], at + done
