"""Elements of outputs that a kernel never writes: whoever takes the output finds there what was there before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tile_eg.simulator.findings import Finding, Simulation


def blamed(done: Simulation, names: Sequence[str], line: int) -> Simulation:
    """The run with a finding, at the kernel's line, for each output that it does not write whole; `names` are the outputs'."""
    masks = {name: mask for name, mask in zip(names, done.unwritten, strict=True) if mask is not None}
    return replace(done, findings=(*done.findings, *unwritten_findings(masks, line)))


def unwritten_findings(masks: Mapping[str, np.ndarray], line: int) -> list[Finding]:
    """A finding for each mask that holds anywhere."""
    return [Finding("unwritten", unwritten_text(name, mask), line) for name, mask in masks.items() if mask.any()]


def unwritten_text(name: str, mask: np.ndarray) -> str:
    """How many elements are meant, and which is the first: "64 of 4096 elements of C are never written, the first is C[0, 8]"."""
    count, first = int(mask.sum()), np.unravel_index(int(mask.argmax()), mask.shape)
    place = f"{name}[{', '.join(str(int(i)) for i in first)}]"
    if count == mask.size:
        return f"{name} is never written"
    if count == 1:
        return f"{place} is never written"
    return f"{count} of {mask.size} elements of {name} are never written, the first is {place}"
