"""What the engine finds of a program: its time, what its pipes did meanwhile, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping

from tile_eg.ops.records import record
from tile_eg.timeline.cores import Handover, Span


@record
class Timeline:
    """What the engine found. `cycles` are those between the first and the last instruction of the whole launch.

    `busy` is cycles by (core, pipe) in one block of `block_cycles`; `bytes` is by path ("GM->L1") in the whole launch. `bound` is
    what bounds the kernel: "HBM", a pipe ("AIC.MTE2"), or "latency" where no pipe is busy half of the time. `spans` are the
    instructions and `handovers` the flags of one block (not all of them when `extrapolated`).
    """

    program: str
    chip: str
    kernel_type: str
    blocks: int
    waves: int
    cycles: float
    microseconds: float
    launch_us: float
    clock_mhz: float
    block_cycles: float
    hbm_cycles: float
    busy: Mapping[tuple[str, str], float]
    bytes: Mapping[str, float]
    bound: str
    spans: tuple[Span, ...]
    extrapolated: bool
    handovers: tuple[Handover, ...] = ()

    @property
    def core_us(self) -> float:
        """Microseconds on the cores: without the launch."""
        return self.microseconds - self.launch_us

    def share(self, core: str, pipe: str) -> float:
        """How much of the block's time a pipe was busy, 0 to 1."""
        return self.busy.get((core, pipe), 0.0) / self.block_cycles if self.block_cycles else 0.0
