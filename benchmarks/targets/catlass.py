"""CATLASS' own kernels in our timeline: the text of an example as it runs in the simulator, timed like any other text."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tile_eg.errors import TileError

PUBLIC = "a checkout of hicann/catlass"
MOST_PRODUCTS = 5 * 10**9
"""Multiply-adds that the simulator and the example's own host check run through within a minute or so."""
SECONDS = 600
SIMULATE = "import sys; from tile_eg.cli import main; sys.exit(main())"


@dataclass(frozen=True)
class Timed:
    """What all launches of a run take together in microseconds, and the range that the assumed constants of the chip leave."""

    microseconds: float
    least: float
    most: float


def timed(checkout: Path, example: str, sizes: Sequence[int], chip: str) -> Timed | None:
    """What `example` (`00_basic_matmul`) takes for a product of M, N and K.

    None where that is too large to be run here, or its run does not find its own results right. TileError where there is no such
    example.
    """
    m, n, k = sizes
    file = checkout / "examples" / example / f"{example.partition('_')[2]}.cpp"
    if not file.exists():
        raise TileError(f"there is no {file}", help=f"--catlass wants {PUBLIC}")
    if m * n * k > MOST_PRODUCTS:
        return None
    headers = [word for folder in ("include", "examples/common") for word in ("-I", str(checkout / folder))]
    words = [str(file), *headers, "-D", "CATLASS_ARCH=2201", "--chip", chip, "--seconds", str(SECONDS), "--json"]
    command = [sys.executable, "-c", SIMULATE, "simulate", *words, "--", *map(str, sizes), "0"]
    ran = subprocess.run(command, capture_output=True, text=True)
    return _told(ran.stdout) if ran.returncode == 0 else None


def _told(out: str) -> Timed | None:
    found = json.loads(out[out.index("{") :])
    if "success" not in found["printed"] or not found["launches"]:
        return None
    ranges = [launch["microseconds_range"] for launch in found["launches"]]
    total = sum(launch["microseconds"] for launch in found["launches"])
    return Timed(total, sum(least for least, _ in ranges), sum(most for _, most in ranges))
