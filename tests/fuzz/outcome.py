"""What becomes of a kernel: right numbers, a limit that is told, or a fault of the compiler."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from tile_eg.errors import InternalError, TileError
from tile_eg.frontend.text import load_text
from tile_eg.inputs import USUAL, drawn_sets
from tile_eg.ir.reference_bounds import Expected
from tile_eg.report.compare import Comparison, compare
from tile_eg.search.compiler import Lowered, expected, lower

LIMITS = (
    r"the first trip of this loop does something else to `\w+` than the later trips",
    r"the valid (rows|columns) of `\w+` change from trip to trip of this loop",
    r"valid elements meet a window of .*: not supported yet",
    r"the tiles need [\d,]+ bytes of \w+ at once",
)
"""What a legal kernel may be refused for, with a place and a way out."""
LOOSE, SMALL = 0.2, 0.05
"""A bound says little that is larger than this part of an output's usual values, or of `SMALL` where those are smaller."""


@dataclass(frozen=True)
class Outcome:
    """kind: good, limit (a TileError that is true), blurred (good, but most elements of an output might be almost anything), or a
    fault."""

    kind: str
    what: str = ""
    seconds: float = 0.0


def outcome(text: str) -> Outcome:
    """Compiles a kernel, runs it in the simulator and compares it with its sequential meaning, on every set of inputs."""
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
    kinds = [_on_inputs(lowered, d.arrays) for d in drawn_sets(kernel, USUAL, seed=1)]
    return replace(next((o for o in kinds if o.kind not in ("good", "blurred")), kinds[0]), seconds=seconds)


def _on_inputs(lowered: Lowered, arrays: Mapping[str, np.ndarray]) -> Outcome:
    """What becomes of one set of inputs."""
    want = expected(lowered.kernel, arrays)
    try:
        run = lowered.run(arrays, strict=False).as_meant(lowered.kernel, arrays)
    except InternalError as e:
        return Outcome("simulator", str(e))
    if run.findings:
        return Outcome("finding", "\n".join(map(str, run.findings)))
    wrong = [c for c in compare(run.outputs, want) if not c.good]
    if wrong:
        return Outcome("wrong numbers", "; ".join(map(_said, wrong)))
    return Outcome("blurred" if any(map(blurred, want.values())) else "good")


def _said(c: Comparison) -> str:
    return f"{c.name}{c.where}: {c.got} instead of {c.want} (allowed {c.allowed:.3g}), {c.wrong} of {c.size} wrong"


def blurred(output: Expected) -> bool:
    """Whether most elements may be anything, as far as the bounds say."""
    finite = np.isfinite(output.value.astype(np.float64))
    values, allowed = output.value.astype(np.float64)[finite], output.allowed[finite]
    return bool(values.size) and float(np.mean(~(allowed <= LOOSE * max(np.median(np.abs(values)), SMALL)))) > 0.5
