"""Elements of outputs that a kernel never writes: whoever takes the output finds there what was there before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tile_eg.errors import TileError
from tile_eg.ir.kernel import Tensor
from tile_eg.simulator.findings import Finding, Simulation


def blamed(done: Simulation, names: Sequence[str], line: int) -> Simulation:
    """The run with a finding, at the kernel's line, for each output that it does not write whole; `names` are the outputs'."""
    masks = {name: mask for name, mask in zip(names, done.unwritten, strict=True) if mask is not None}
    return replace(done, findings=(*done.findings, *unwritten_findings(masks, line)))


def unwritten_findings(masks: Mapping[str, np.ndarray], line: int) -> list[Finding]:
    """A finding for each mask that holds anywhere."""
    return [Finding("unwritten", unwritten_text(name, mask), line) for name, mask in masks.items() if mask.any()]


def left_unwritten(t: Tensor, told: str, wholes: Sequence[str]) -> TileError:
    """That a call leaves elements of an output as they were; `wholes` are the whole numbers that it passes: they may be why."""
    help = f"store to all of {t.name}, or declare it no larger"
    if wholes:
        names = " or ".join(wholes)
        help += (
            f"; where {names} moves a window beyond the end of its tensor the rest is cut off: pass numbers at which it ends "
            "inside, or let one stand for what is not there (`pad`, in Python pad_value=)"
        )
    return TileError(told, t.span, help=help)


def unwritten_text(name: str, mask: np.ndarray) -> str:
    """How many elements are meant, and which is the first: "64 of 4096 elements of C are never written, the first is C[0, 8]"."""
    count, first = int(mask.sum()), np.unravel_index(int(mask.argmax()), mask.shape)
    place = f"{name}[{', '.join(str(int(i)) for i in first)}]"
    if count == mask.size:
        return f"{name} is never written"
    if count == 1:
        return f"{place} is never written"
    return f"{count} of {mask.size} elements of {name} are never written, the first is {place}"
