"""The two judges: pypto's library, which reads a text of instructions, and the fitted table of its public sources."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.judges.ask import LIBRARY
from tile_eg.errors import TileError

ASK = Path(__file__).with_name("ask.py")
UNKNOWN = 2
"""Cycles that the library answers at the most for what it cannot read."""
INSTALL = "install it apart from the project: python -m venv judges; judges/bin/pip install pypto==0.2.0; then --pypto judges"
TABLE = "PostSimulatorA2A3.h"
PUBLIC = f"{TABLE} is in the public repository hicann/pypto, framework/src/cost_model/simulation/arch/A2A3: --fit FILE"

MHZ = 2000
"""Cycles of the fitted table in a microsecond (PipeSimulatorFast.cpp; its slopes come out at whole cycles a repeat with that)."""
ONCE = {"float": ("DIV", "EXP", "LN", "SQRT")}
"""What the fitted table counts once by its bytes; everything else twice."""
GM = {"COPY_IN": 1400, "COPY_OUT": 300}
"""Cycles that a copy from or to GM takes besides."""
BYTES = {"int8_t": 1, "half": 2, "float": 4}


def library(named: Path | None) -> Path:
    """The folder of pypto's libraries: under `named`, or of the pypto that this interpreter would import."""
    spec = None if named else find_spec("pypto")
    roots = [named] if named else [Path(p) for p in (spec.submodule_search_locations or () if spec else ())]
    found = [file.parent for root in roots for file in sorted(root.rglob(LIBRARY))]
    if not found:
        missing = f"there is no {LIBRARY} under {named}" if named else "pypto is not installed for this Python"
        raise TileError(missing, help=INSTALL)
    return found[0]


def asked(folder: Path, texts: Sequence[str]) -> list[float | None]:
    """Cycles of each text by pypto's library; None for one that it cannot read."""
    done = subprocess.run([sys.executable, str(ASK), str(folder)], input=json.dumps(list(texts)), capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise TileError(f"pypto's library in {folder} does not answer: {last}", help=INSTALL)
    return [None if cycles <= UNKNOWN else float(cycles) for cycles in json.loads(done.stdout)]


@dataclass(frozen=True)
class Fit:
    """An operation of the fitted table: microseconds of a million bytes, and of none."""

    slope: float
    fixed: float

    def cycles(self, name: str, dtype: str, size: int) -> float:
        """Of `size` bytes, alone (PipeSimulatorFast.cpp, PostSimulate)."""
        passes = 1 if name in ONCE.get(dtype, ()) else 2
        gm = next((cycles for copy, cycles in GM.items() if name.endswith(copy)), 0)
        return int((self.slope * size * passes * 1e-6 + self.fixed) * MHZ) + 1 + gm


def fits(file: Path) -> Mapping[str, Fit]:
    """The fitted table of a PostSimulatorA2A3.h, by the names of its operations."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TileError(f"{file} cannot be read: {error}", help=PUBLIC) from error
    number = r"\s*([-+.\deE]+)f?\s*"
    found = {m[1]: Fit(float(m[2]), float(m[3])) for m in re.finditer(rf'\{{\s*"(\w+)"\s*,\s*\{{{number},{number}\}}', text)}
    if not found:
        raise TileError(f"{file} has no table of operations with two numbers each", help=PUBLIC)
    return found
