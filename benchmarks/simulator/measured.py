"""Kernels of the simulator's goals, and what a run of each takes beside NumPy."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import prod
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from tile_eg.cli import sources
from tile_eg.emit.names import kernel_symbol
from tile_eg.inputs import draw
from tile_eg.ir.kernel import Tensor
from tile_eg.search.planned import Planned
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
    """Of one run: seconds on the clock, processor seconds of it and of its processes, those of NumPy in this process, and the
    largest memory of one process of the run, beside the bytes of the kernel's tensors."""

    seconds: float
    processor: float
    numpy: float
    memory: int
    tensors: int


def measured(case: Case) -> Measured:
    """A run in a process of its own, whose memory is that of the run alone: what compiles has ended before."""
    for step in (_compiled, _measured):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            done = process.submit(step, case).result()
    return done


def _planned(case: Case) -> Planned:
    return sources.compiled(EXAMPLES / f"{case.example}.tile", dict(case.sizes), None)


def _compiled(case: Case) -> None:
    planned = _planned(case)
    build(planned.source, kernel_symbol(planned.program))


def _measured(case: Case) -> Measured:
    planned = _planned(case)
    given = draw([t for t in planned.program.tensors if not t.output], "uniform", 0)
    begun, start = _children(), perf_counter()
    planned.run(given, seconds=3600).raise_findings()
    seconds, processor = perf_counter() - start, _children() - begun
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    start = process_time()
    case.meant(given)
    in_numpy = process_time() - start
    tensors = sum(a.nbytes for a in given.values()) + sum(_bytes(t) for t in planned.program.tensors if t.output)
    return Measured(seconds, processor, in_numpy, memory, tensors)


def _bytes(tensor: Tensor) -> int:
    return prod(tensor.shape) * tensor.dtype.bytes


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system
