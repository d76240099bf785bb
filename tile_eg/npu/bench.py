"""How long a kernel takes on an NPU: warmed up, L2 flushed before each launch, timed by the device's own events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING

from tile_eg.errors import TileError
from tile_eg.npu.arrays import NpuArray
from tile_eg.npu.device import Planned, Ready, ready

if TYPE_CHECKING:
    import numpy as np

OUTLIER = 5.0
"""Times of the usual deviation (1.4826 times the median one) from the median, beyond which a launch is left out."""
LEAST_KEPT = 0.5
"""Where more than this part would be left out, nothing is: then the times scatter, and no few of them are to blame."""


@dataclass(frozen=True)
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


def kept(times: Sequence[float]) -> tuple[float, ...]:
    """The times without outliers. TileError where one of them is none: zero, below, or no number."""
    if wrong := [t for t in times if not isfinite(t) or t <= 0]:
        message = f"the device's events give {wrong[0]:g} us for {len(wrong)} of {len(times)} launches, which is no time"
        raise TileError(message, help="is the driver of the version that this CANN needs? `tile-eg doctor` shows both")
    middle = median(times)
    usual = 1.4826 * median(abs(t - middle) for t in times)
    near = tuple(t for t in times if abs(t - middle) <= OUTLIER * usual)
    return near if len(near) >= LEAST_KEPT * len(times) and near else tuple(times)


class OnNpu:
    """A kernel with its arrays on a device, ready to be launched again and again."""

    def __init__(self, planned: Planned, arrays: Mapping[str, np.ndarray], device: int = 0) -> None:
        """`arrays` hold what inputs are and what outputs begin with."""
        import numpy as np

        self.planned, self.device = planned, device
        self.ready: Ready = ready(planned, device)
        launcher = self.ready.launcher
        self.held = {name: NpuArray(a.shape, a.dtype, device, launcher).copy_from(a) for name, a in arrays.items()}
        self.workspace = NpuArray((max(self.ready.workspace, 1),), np.dtype(np.uint8), device, launcher)
        self.addresses = [self.held[t.name].data_ptr() for t in planned.program.tensors]
        self.stream = launcher.stream(device)

    def launch(self) -> None:
        self.ready.launch(self.addresses, self.workspace.data_ptr(), self.stream)

    def outputs(self) -> dict[str, np.ndarray]:
        """What the written tensors hold, once everything that was launched is done."""
        self.ready.launcher.wait(self.device, self.stream)
        return {t.name: self.held[t.name].numpy() for t in self.planned.program.tensors if t.output}

    def measure(self, launches: int = 100, warmup: int = 10) -> Measured:
        """Times that many launches. TileError where a launch fails, or no time comes back."""
        import numpy as np

        launcher, device, stream = self.ready.launcher, self.device, self.stream
        flush = NpuArray((2 * self.planned.chip.l2_bytes,), np.dtype(np.uint8), device, launcher)
        for _ in range(warmup):
            self.launch()
        events = [(launcher.event(device), launcher.event(device)) for _ in range(launches)]
        for before, after in events:
            launcher.step("fill", "flush L2", device, flush.address, 0, flush.nbytes, stream)
            launcher.step("record", "record an event", device, before, stream)
            self.launch()
            launcher.step("record", "record an event", device, after, stream)
        launcher.wait(device, stream)
        times = [launcher.elapsed(device, before, after) for before, after in events]
        for event in (e for pair in events for e in pair):
            launcher.step("forget", "give an event back", device, event)
        return Measured(kept(times), launches)
