"""Which kernels run, told to whoever listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tile_eg.ops.records import record

if TYPE_CHECKING:
    from tile_eg.npu.device import Ready
    from tile_eg.search.planned import Planned


@record
class Launch:
    """A kernel that runs; `ready` is the one that is loaded on an NPU, and None where it runs in the simulator."""

    planned: Planned
    ready: Ready | None = None


_listening: list[list[Launch]] = []


def launched(planned: Planned, ready: Ready | None = None) -> None:
    """Tells whoever listens (`launches`) that a kernel runs."""
    for heard in _listening:
        heard.append(Launch(planned, ready))


@contextmanager
def launches() -> Iterator[list[Launch]]:
    """The kernels that run inside, in order."""
    heard: list[Launch] = []
    _listening.append(heard)
    try:
        yield heard
    finally:
        _listening.remove(heard)
