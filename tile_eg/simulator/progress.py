"""How far a run in the simulator is, told to whoever asked for it while it runs."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from tile_eg.ops.records import record

EVERY = 0.5
"""Seconds between two looks."""
_PLACES = 11


@record
class Progress:
    """Which launch of a file runs (from 1; 0: none), its blocks, those that have ended; seconds since the run, and it, began."""

    launch: int
    blocks: int
    ended: int
    seconds: float
    launch_seconds: float

    @property
    def left(self) -> float | None:
        """Seconds that this launch still takes if its blocks go on as they did; None before the first has ended."""
        return self.launch_seconds * (self.blocks - self.ended) / self.ended if self.ended else None

    def __str__(self) -> str:
        if not self.launch:
            return f"running for {self.seconds:.0f} s, no kernel is launched yet"
        left = "" if self.left is None else f", about {self.left:.0f} s left"
        return f"launch {self.launch}: {self.ended} of {self.blocks} blocks after {self.seconds:.0f} s{left}"


Watcher = Callable[[Progress], None]
_watchers: list[Watcher] = []


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Calls the watcher about twice a second while a run goes on inside the block."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


@dataclass
class Meter:
    """Reads what the simulator's process writes into `file`."""

    file: IO[bytes]
    began: float = field(default_factory=time.monotonic)
    launch: tuple[int, float] = (0, 0.0)

    def read(self) -> Progress:
        data = os.pread(self.file.fileno(), 8 * _PLACES, 0).ljust(8 * _PLACES, b"\0")
        launch, blocks, *ended = struct.unpack(f"={_PLACES}q", data)
        now = time.monotonic()
        if launch != self.launch[0]:
            self.launch = launch, now
        return Progress(launch, blocks, min(sum(ended), blocks), now - self.began, now - self.launch[1])

    def tell(self) -> None:
        """Says to those who watch how far the run is."""
        for watcher in _watchers:
            watcher(self.read())
