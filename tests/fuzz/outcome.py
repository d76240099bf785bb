"""What becomes of a kernel: right numbers, a limit that is told, or a fault of the compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from tile_eg.compiler import InternalError, lower, meaning
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.inputs import draw
from tile_eg.ir import kernel as kn
from tile_eg.ir.types import F32, DType

LIMITS = (
    r"the first trip of this loop does something else to `\w+` than the later trips",
    r"the valid (rows|columns) of `\w+` change from trip to trip of this loop",
    r"valid elements meet a window of .*: not supported yet",
    r"the tiles need [\d,]+ bytes of \w+ at once",
)
"""What a legal kernel may be refused for, with a place and a way out."""
UNIT = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-13}


@dataclass(frozen=True)
class Outcome:
    """kind: good, limit (a TileError that is true), blurred (the numbers say nothing), or a fault."""

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
    want = meaning(kernel, arrays)
    noise = blur(kernel, arrays, want)
    if noise is None:
        return Outcome("blurred", "", seconds)
    try:
        run = lowered.run(arrays, strict=False)
    except InternalError as e:
        return Outcome("simulator", str(e), seconds)
    if run.findings:
        return Outcome("finding", "\n".join(map(str, run.findings)), seconds)
    for name, limit in noise.items():
        error = np.abs(run[name].astype(np.float64) - want[name].astype(np.float64))
        wrong = ~(error <= limit) & ~np.isnan(want[name].astype(np.float32))
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            what = f"{name}{at}: {run[name][at]} instead of {want[name][at]}, {wrong.sum()} of {wrong.size} wrong"
            return Outcome("wrong numbers", f"{what}, limit {limit:.3g}", seconds)
    return Outcome("good", "", seconds)


def blur(kernel: kn.Kernel, arrays: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> dict[str, float] | None:
    """The absolute error that each output may have: what roundings do to it. None where they leave nothing to compare.

    The same kernel without 16-bit roundings and with inputs moved by 2**-18 of themselves tells how much it depends on them.
    """
    rng = np.random.default_rng(2)
    moved = {n: a.astype(np.float32) * (1 + 2.0**-18 * rng.uniform(-1, 1, a.shape).astype(np.float32)) for n, a in arrays.items()}
    exact = meaning(_wide(kernel), moved)
    out = {}
    for t in (t for t in kernel.tensors if t.output):
        a, b = want[t.name].astype(np.float64), exact[t.name].astype(np.float64)
        size = np.abs(a[~np.isnan(a)])
        if not size.size or not np.isfinite(size).all() or size.max() > 1e4:
            return None
        unit = max(UNIT[d.name] for d in _dtypes(kernel))
        out[t.name] = 6 * float(np.nanmax(np.abs(a - b))) + 4 * unit * float(size.max()) + 1e-6
        if out[t.name] > 0.2 * max(float(np.median(size)), 0.05):
            return None
    return out


def _wide(kernel: kn.Kernel) -> kn.Kernel:
    """The kernel with every tensor and buffer in f32."""
    return replace(
        kernel,
        tensors=tuple(replace(t, dtype=F32) for t in kernel.tensors),
        body=tuple(replace(s, dtype=F32) if isinstance(s, kn.Alloc) else s for s in kernel.body),
    )


def _dtypes(kernel: kn.Kernel) -> list[DType]:
    return [t.dtype for t in kernel.tensors] + [s.dtype for s in kernel.body if isinstance(s, kn.Alloc)]
