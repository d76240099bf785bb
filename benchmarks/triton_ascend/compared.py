"""What is measured of both, in processor seconds of all threads and child processes: other load on the machine is not in them."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

from benchmarks.triton_ascend.ours import EXAMPLES

HERE = Path(__file__).parent
PACKAGES = ("triton", "ascendnpuir", "pybind11")
PYTHON = "TILE_EG_TRITON"
"""The environment variable that names the interpreter which has Triton; this one is asked otherwise."""
PROCESSES, WARM = 5, 4
"""Of so many processes, or compilations behind the first one of a process, the median counts."""
SIZES = (512, 1024, 2048, 4096, 8192)
Seconds = Callable[[], float]


@dataclass(frozen=True)
class Row:
    """One thing that is measured. `theirs` is None where Triton has nothing like it; `aim` in processor seconds, for ours."""

    name: str
    ours: Seconds
    theirs: Seconds | None = None
    aim: float | None = None


def rows(triton: str | None) -> Iterator[Row]:
    """All rows, `triton` being an interpreter that has it (None: there is none)."""

    def theirs(measure: Callable[..., float], *arguments: object) -> Seconds | None:
        return None if triton is None else lambda: measure(triton, *map(str, arguments))

    def row(name: str, example: str, kernel: str, size: int, sizes: str, aim: float | None = None) -> Row:
        return Row(name, lambda: _warm(example, sizes), theirs(_warm_there, kernel, size), aim)

    yield Row("Python with NumPy", _numpy)
    yield Row("GEMM, cold", lambda: _cold("gemm"), theirs(_cold_there, "gemm", 512), 0.8)
    yield Row("attention, cold", lambda: _cold("flash_attention"), theirs(_cold_there, "attention", 256), 1.2)
    yield Row("GEMM, with the cache, beyond Python with NumPy", lambda: _again("gemm") - _numpy(), aim=0.15)
    yield row("GEMM, warm", "gemm", "gemm", 512, "", 0.1)
    yield row("attention, warm", "flash_attention", "attention", 256, "", 0.25)
    for n in SIZES:
        yield row(f"GEMM {n} cubed, warm", "gemm", "gemm", n, f"M={n},N={n},K={n}")
    spread = Row("the slowest of these to the quickest", _spread(lambda n: _warm("gemm", f"M={n},N={n},K={n}")), aim=2)
    yield spread if triton is None else replace(spread, theirs=_spread(lambda n: _warm_there(triton, "gemm", str(n))))
    for n in (1024, 4096):
        yield row(f"attention of {n} rows, warm", "flash_attention", "attention", n, f"S={n}", 0.25)
    yield Row("GEMM + matrix 4096 cubed, warm", lambda: _warm("matmul_add", "M=4096,N=4096,K=4096"))


def interpreter(named: str | None) -> tuple[str | None, str]:
    """An interpreter that has Triton for Ascend: the one that is `named`, or the environment's, or this one. None, and why, where
    it has not."""
    python = named or os.environ.get(PYTHON) or sys.executable
    asked = f"import importlib.util as u, json\nprint(json.dumps([p for p in {PACKAGES!r} if u.find_spec(p) is None]))"
    try:
        missing = json.loads(subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout)
    except (OSError, subprocess.CalledProcessError) as error:
        return None, f"{python} does not run: {error}"
    return (None, f"{python} has no {', '.join(missing)}") if missing else (python, "")


def _process(*command: str) -> float:
    """Processor seconds of a whole process, those that it started and waited for included: the median of several."""

    def once() -> float:
        before = _children()
        subprocess.run(command, check=True, capture_output=True, cwd=HERE.parents[1])
        return _children() - before

    return median(once() for _ in range(PROCESSES))


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _numpy() -> float:
    return _process(sys.executable, "-c", "import numpy")


def _cold(example: str) -> float:
    return _process(sys.executable, "-m", "tile_eg", "emit", str(EXAMPLES / f"{example}.tile"), "--no-cache")


def _again(example: str) -> float:
    """The first of the processes fills the cache, if it was not there; the median is of others."""
    return _process(sys.executable, "-m", "tile_eg", "emit", str(EXAMPLES / f"{example}.tile"))


def _cold_there(python: str, kernel: str, size: str) -> float:
    return _process(python, str(HERE / "compiled.py"), kernel, size, "1")


def _spread(seconds: Callable[[int], float]) -> Seconds:
    """The most that one of the sizes takes, as a multiple of the least."""
    return lambda: max(map(seconds, SIZES)) / min(map(seconds, SIZES))


@cache
def _warm(example: str, sizes: str) -> float:
    return _later(sys.executable, "-m", "benchmarks.triton_ascend.ours", example, sizes)


@cache
def _warm_there(python: str, kernel: str, size: str) -> float:
    return _later(python, str(HERE / "compiled.py"), kernel, size)


def _later(*command: str) -> float:
    """Of the compilations that one process prints, the median behind the first."""
    told = subprocess.run([*command, str(WARM + 1)], check=True, capture_output=True, text=True, cwd=HERE.parents[1]).stdout
    return median(json.loads(told)[1:])
