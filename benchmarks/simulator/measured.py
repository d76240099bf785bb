"""Kernels of the simulator's goals, and what a run of each takes beside NumPy."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from tile_eg.cli import sources
from tile_eg.emit.names import kernel_symbol
from tile_eg.inputs import draw
from tile_eg.simulator.build import build

EXAMPLES = Path(__file__).parents[2] / "examples"
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """An example at a size; `meant` is the same in NumPy, in float32. `limit`: seconds on the clock that a run may take."""

    example: str
    sizes: Mapping[str, int | str]
    meant: Callable[[Arrays], object]
    limit: float

    @property
    def name(self) -> str:
        return f"{self.example} {' x '.join(map(str, self.sizes.values()))}"


def cases(scale: int = 1) -> list[Case]:
    """Those of the goals, or smaller ones: lengths divided by `scale`."""
    m, rows, s = 4096 // scale, 8192 // scale, 4096 // scale
    return [
        Case("gemm", {"M": m, "N": m, "K": m}, _product, 25),
        Case("softmax", {"M": rows, "N": 1024}, _softmax, 2),
        Case("flash_attention", {"B": 1, "H": 16, "S": s, "D": 128}, _attention, 60),
    ]


def _product(given: Arrays) -> object:
    return given["A"].astype(np.float32) @ given["B"].astype(np.float32)


def _softmax(given: Arrays) -> object:
    x = np.exp(given["X"] - given["X"].max(1, keepdims=True))
    return x / x.sum(1, keepdims=True)


def _attention(given: Arrays) -> object:
    q, k, v = (given[n].astype(np.float32) for n in "QKV")
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)) @ v


@dataclass(frozen=True)
class Measured:
    """Of one run: seconds on the clock, processor seconds of all its processes, and those of NumPy for the same."""

    seconds: float
    processor: float
    numpy: float


def measured(case: Case) -> Measured:
    """A run of the emitted text, which is compiled before."""
    planned = sources.compiled(EXAMPLES / f"{case.example}.tile", dict(case.sizes), None)
    build(planned.source, kernel_symbol(planned.program))
    given = draw([t for t in planned.program.tensors if not t.output], "uniform", 0)
    begun, start = _children(), perf_counter()
    planned.run(given, seconds=3600).raise_findings()
    seconds, processor = perf_counter() - start, _children() - begun
    start = process_time()
    case.meant(given)
    return Measured(seconds, processor, process_time() - start)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
