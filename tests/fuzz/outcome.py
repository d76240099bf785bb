"""What becomes of a kernel: right numbers, a limit that is told, or a fault of the compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from tile_eg.compiler import InternalError, expected, lower
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.inputs import draw
from tile_eg.ir.reference_bounds import Expected
from tile_eg.report.compare import Comparison, compare

LIMITS = (
    r"the first trip of this loop does something else to `\w+` than the later trips",
    r"the valid (rows|columns) of `\w+` change from trip to trip of this loop",
    r"valid elements meet a window of .*: not supported yet",
    r"the tiles need [\d,]+ bytes of \w+ at once",
)
"""What a legal kernel may be refused for, with a place and a way out."""
LOOSE, SMALL = 0.2, 0.05
"""A bound says little that is larger than this part of what an output's values usually are, or of `SMALL` where those are smaller."""


@dataclass(frozen=True)
class Outcome:
    """kind: good, limit (a TileError that is true), blurred (as good, but the bounds of most elements of an output say little), or
    a fault."""

    kind: str
    what: str = ""
    seconds: float = 0.0


def outcome(text: str) -> Outcome:
    """Compiles a kernel, runs it in the simulator and compares it with its sequential meaning."""
    start = perf_counter()
    try:
        kernel = load_text(text, "fuzz.tile").instantiate()
        lowered = lower(kernel)
    except TileError as e:
        told = any(re.search(limit, e.message) for limit in LIMITS)
        return Outcome("limit" if told else "refused", e.render() if not told else e.message, perf_counter() - start)
    except InternalError as e:
        return Outcome("internal error", str(e), perf_counter() - start)
    seconds = perf_counter() - start
    arrays = draw([t for t in kernel.tensors if not t.output], "uniform", seed=1)
    want = expected(kernel, arrays)
    try:
        run = lowered.run(arrays, strict=False)
    except InternalError as e:
        return Outcome("simulator", str(e), seconds)
    if run.findings:
        return Outcome("finding", "\n".join(map(str, run.findings)), seconds)
    wrong = [c for c in compare(run.outputs, want) if not c.good]
    if wrong:
        return Outcome("wrong numbers", "; ".join(map(_said, wrong)), seconds)
    return Outcome("blurred" if any(map(blurred, want.values())) else "good", "", seconds)


def _said(c: Comparison) -> str:
    return f"{c.name}{c.where}: {c.got} instead of {c.want} (allowed {c.allowed:.3g}), {c.wrong} of {c.size} wrong"


def blurred(output: Expected) -> bool:
    """Whether most elements may be anything, as far as the bounds say."""
    finite = np.isfinite(output.value.astype(np.float64))
    values, allowed = output.value.astype(np.float64)[finite], output.allowed[finite]
    return bool(values.size) and float(np.mean(~(allowed <= LOOSE * max(np.median(np.abs(values)), SMALL)))) > 0.5
