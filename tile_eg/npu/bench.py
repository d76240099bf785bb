"""How long a kernel takes on an NPU: warmed up, L2 flushed before each launch, timed by the device's own events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING

from tile_eg.errors import TileError
from tile_eg.ir.passed import examples
from tile_eg.npu.arrays import NpuArray
from tile_eg.npu.device import Planned, Ready, ready
from tile_eg.ops.records import record

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.npu.launcher import Launcher

OUTLIER = 5.0
"""Times of the usual deviation (1.4826 times the median one) from the median, beyond which a launch is left out."""
LEAST_KEPT = 0.5
"""Where more than this part would be left out, nothing is: then the times scatter, and no few of them are to blame."""


@record
class Measured:
    """The times of a kernel's launches in microseconds, without outliers, and of how many launches they are."""

    times: tuple[float, ...]
    launches: int

    @property
    def median(self) -> float:
        return median(self.times)

    @property
    def least(self) -> float:
        return min(self.times)


def finite(times: Sequence[float]) -> Sequence[float]:
    """The times. TileError where one of them is none: zero, below, or no number."""
    if wrong := [t for t in times if not isfinite(t) or t <= 0]:
        message = f"the device's events give {wrong[0]:g} us for {len(wrong)} of {len(times)} launches, which is no time"
        raise TileError(message, help="is the driver of the version that this CANN needs? `tile-eg doctor` shows both")
    return times


def kept(times: Sequence[float]) -> tuple[float, ...]:
    """The times without outliers. TileError where one of them is none."""
    middle = median(finite(times))
    usual = 1.4826 * median(abs(t - middle) for t in times)
    near = tuple(t for t in times if abs(t - middle) <= OUTLIER * usual)
    return near if len(near) >= LEAST_KEPT * len(times) and near else tuple(times)


class OnNpu:
    """A kernel with its arrays on a device, ready to be launched again and again."""

    def __init__(self, planned: Planned, arrays: Mapping[str, np.ndarray], device: int = 0) -> None:
        """`arrays` hold what inputs are and what outputs begin with. Numbers of a call are examples."""
        import numpy as np

        self.planned, self.device = planned, device
        self.ready: Ready = ready(planned, device)
        launcher = self.ready.launcher
        self.held = {name: NpuArray(a.shape, a.dtype, device, launcher).copy_from(a) for name, a in arrays.items()}
        self.workspace = NpuArray((max(self.ready.workspace, 1),), np.dtype(np.uint8), device, launcher)
        self.addresses = [self.held[t.name].data_ptr() for t in planned.program.tensors]
        self.passed = tuple(examples(planned.program).values())
        self.stream = launcher.stream(device)

    def launch(self) -> None:
        self.ready.launch(self.addresses, self.workspace.data_ptr(), self.stream, self.passed)

    def outputs(self) -> dict[str, np.ndarray]:
        """What the written tensors hold, once everything that was launched is done."""
        self.ready.launcher.wait(self.device, self.stream)
        return {t.name: self.held[t.name].numpy() for t in self.planned.program.tensors if t.output}

    def measure(self, launches: int = 100, warmup: int = 10) -> Measured:
        """Times that many launches. TileError where a launch fails, or no time comes back."""
        for _ in range(warmup):
            self.launch()
        flush = 2 * self.planned.chip.l2_bytes
        return Measured(kept(timed(self.launch, self.ready.launcher, self.device, self.stream, launches, flush)), launches)


def nothing() -> None:
    """What is done before a call where nothing is to be."""


def timed(
    once: Callable[[], object],
    launcher: Launcher,
    device: int,
    stream: int,
    launches: int,
    flush: int,
    before: Callable[[], object] = nothing,
) -> list[float]:
    """Microseconds that each of so many calls of `once` takes on a stream, which it puts its kernels on, by the device's events.

    Each call comes behind a write of `flush` bytes, so that L2 holds nothing of the one before, and behind `before()`. TileError
    where a call fails; no event is left then, either.
    """
    import numpy as np

    written = NpuArray((flush,), np.dtype(np.uint8), device, launcher)
    with _events(launcher, device, stream, 2 * launches) as made:
        pairs = list(zip(made[::2], made[1::2], strict=True))
        for first, last in pairs:
            before()
            launcher.step("fill", "flush L2", device, written.address, 0, written.nbytes, stream)
            launcher.step("record", "record an event", device, first, stream)
            once()
            launcher.step("record", "record an event", device, last, stream)
        launcher.wait(device, stream)
        return [launcher.elapsed(device, first, last) for first, last in pairs]


@contextmanager
def _events(launcher: Launcher, device: int, stream: int, count: int) -> Iterator[list[int]]:
    """So many events, which are given back whatever happens: behind a failure once the stream has gone past them."""
    made: list[int] = []
    try:
        made += (launcher.event(device) for _ in range(count))
        yield made
    except BaseException:
        launcher.calls["wait"](device, stream)
        for event in made:
            launcher.calls["forget"](device, event)
        raise
    for event in made:
        launcher.step("forget", "give an event back", device, event)
