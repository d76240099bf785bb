"""How long a function takes whose kernels run on an NPU, by the device's own events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError
from tile_eg.ops.records import record

if TYPE_CHECKING:
    from tile_eg.jit.launches import Launch

ESTIMATED = 5
"""Calls by which is estimated how many fill the time that was asked for."""


@record
class Repeats:
    """How long is measured: milliseconds, and in their place numbers of calls where these are not 0."""

    warmup: float
    rep: float
    n_warmup: int = 0
    n_repeat: int = 0

    def calls(self, estimate: Callable[[], float]) -> tuple[int, int]:
        """Calls before the measurement, and in it; `estimate` gives the milliseconds of one."""
        if self.n_warmup > 0 and self.n_repeat > 0:
            return self.n_warmup, self.n_repeat
        one = estimate()
        return self.n_warmup or max(1, int(self.warmup / one)), self.n_repeat or max(1, int(self.rep / one))


def measured(
    fn: Callable[[], Any], heard: Sequence[Launch], repeats: Repeats, grad_to_none: Iterable[Any] = ()
) -> list[float]:
    """Milliseconds of each of the calls of `fn` that `repeats` asks for; `heard` are the launches of one.

    TileError where they are on several devices or in the simulator, too, and where a step on the device fails.
    """
    from tile_eg.npu.bench import finite, timed
    from tile_eg.npu.device import current_stream

    ready = heard[0].ready
    if ready is None or any(one.ready is None or one.ready.device != ready.device for one in heard):
        places = dict.fromkeys(f"npu:{one.ready.device}" if one.ready else "the simulator" for one in heard)
        message = f"do_bench measures on one device, and the kernels of this call run on {' and '.join(places)}"
        raise TileError(message, help=".npu(), or .cpu(), moves an array")
    flush, dropped = 2 * max(one.planned.chip.l2_bytes for one in heard), list(grad_to_none)

    def before() -> None:
        for tensor in dropped:
            tensor.grad = None

    def times(calls: int) -> list[float]:
        found = timed(fn, ready.launcher, ready.device, current_stream(ready.device), calls, flush, before)
        return [microseconds / 1000 for microseconds in finite(found)]

    warmup, calls = repeats.calls(lambda: sum(times(ESTIMATED)) / ESTIMATED)
    for _ in range(warmup):
        fn()
    return times(calls)
