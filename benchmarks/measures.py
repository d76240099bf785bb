"""The measurements: seconds of wall time, each with the limit that the project holds itself to."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter

EXAMPLES = Path(__file__).parent.parent / "examples"
GEMM, FLASH = EXAMPLES / "gemm.tile", EXAMPLES / "flash_attention.tile"
SIMULATED = {GEMM: {"M": 512, "N": 512, "K": 512}, FLASH: {"B": 1, "H": 1, "S": 256, "D": 64}}
REPEATS = 3
CACHES: list[tempfile.TemporaryDirectory] = []  # gone when the process ends


@dataclass(frozen=True)
class Measure:
    """`seconds` gives one measurement; the median of `repeats` counts. `limit` is in seconds, None where there is none."""

    name: str
    limit: float | None
    seconds: Callable[[], float]
    repeats: int = REPEATS

    def median(self) -> float:
        return median(self.seconds() for _ in range(self.repeats))


def measures() -> Iterator[Measure]:
    yield Measure("import tile_eg", 0.2, _import)
    yield Measure("GEMM to Ascend C, cold", 1.5, lambda: _cold(GEMM))
    yield Measure("flash attention to Ascend C, cold", 3.0, lambda: _cold(FLASH))
    yield Measure("GEMM to Ascend C, compiled by another process before", 0.5, lambda: _again(GEMM))
    yield Measure("GEMM to Ascend C, warm", 0.25, lambda: _warm(GEMM))
    yield Measure("flash attention to Ascend C, warm", 0.8, lambda: _warm(FLASH))
    yield Measure("a launch on an NPU, tile_eg's own part of it", 20e-6, _launch)
    yield Measure("simulator: first compile and run of GEMM", None, lambda: _with_empty_cache(GEMM), 1)
    yield Measure("simulator: GEMM 512 x 512 x 512", 3.0, lambda: _simulate(GEMM))
    yield Measure("simulator: first compile and run of flash attention", None, lambda: _with_empty_cache(FLASH), 1)
    yield Measure("simulator: flash attention (1, 1, 256, 64)", 3.0, lambda: _simulate(FLASH))


def _launch() -> float:
    """Processor time of a call on NPU arrays whose launch does nothing, in the stand-in for CANN; its output is passed in."""
    return float(_python(str(Path(__file__).parent / "launch.py")))


def _python(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout


def _import() -> float:
    """Of the import statement alone, in a fresh interpreter."""
    return float(_python("-c", "from time import perf_counter as t\ns = t()\nimport tile_eg\nprint(t() - s)"))


def _cold(file: Path) -> float:
    """Of a whole process, the interpreter's own start included."""
    start = perf_counter()
    _python("-m", "tile_eg", "emit", str(file), "--no-cache")
    return perf_counter() - start


def _again(file: Path) -> float:
    """Of a whole process that takes what one before it has kept."""
    _python("-m", "tile_eg", "emit", str(file))
    start = perf_counter()
    _python("-m", "tile_eg", "emit", str(file))
    return perf_counter() - start


def _warm(file: Path) -> float:
    """Of text to Ascend C in a process that has compiled this kernel before."""
    from tile_eg.frontend.text import load_text
    from tile_eg.search.compiler import lower

    def once() -> float:
        start = perf_counter()
        _ = lower(load_text(file.read_text(), str(file)).instantiate()).source
        return perf_counter() - start

    once()
    return once()


@cache
def _prepared(file: Path):
    from tile_eg.cli import sources
    from tile_eg.inputs import draw

    planned = sources.compiled(file, SIMULATED[file], None)
    return planned, draw([t for t in planned.program.tensors if not t.output], "uniform", 0)


def _simulate(file: Path) -> float:
    """Of one run of the emitted text in the simulator."""
    planned, inputs = _prepared(file)
    start = perf_counter()
    planned.run(inputs).raise_findings()
    return perf_counter() - start


def _with_empty_cache(file: Path) -> float:
    """Of a first run on a machine: the simulator's own runtime is compiled too. Later runs find what it compiled."""
    CACHES.append(tempfile.TemporaryDirectory(prefix="tile_eg_benchmark_"))
    os.environ["TILE_EG_CACHE"] = CACHES[-1].name
    return _simulate(file)
