"""The default search model: every instruction at its back-to-back time from the chip's tables, vector instructions one by one."""

from __future__ import annotations

from tile_eg.chips import Chip
from tile_eg.timeline.instruction import cycles
from tile_eg.timeline.work import Work


class Analytic:
    """Adds up `cycles` by pipe.

    Most vector instructions read what the one before has written, behind a barrier: they pay their start-up. A constant waits for
    nothing.
    """

    name = "analytic"

    def __init__(self, chip: Chip) -> None:
        self.chip = chip

    def node_cost(self, work: tuple[Work, ...]) -> dict[str, float]:
        """Busy cycles by core and pipe ("AIC.MTE2") of a node that consists of these instructions."""
        busy: dict[str, float] = {}
        for w in work:
            busy[w.pipe] = busy.get(w.pipe, 0.0) + cycles(self.chip, w, cold=w.pipe == "AIV.V" and w.op != "vdup")
        return busy
