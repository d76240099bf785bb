"""Runs an expert's program in the simulator as it stands, with its own flags."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tile_eg.ir.program import Program
from tile_eg.ir.program.parser import parse_program
from tile_eg.search.compiler import plan


def halves(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float16)


def ran(p: Program, arrays: Mapping[str, np.ndarray], order: int | None = None) -> np.ndarray:
    """The only output, as floats; fails on anything that the simulator finds, and where the program is no sound text."""
    assert parse_program(str(p)) == p
    run = plan(p).run(arrays, strict=False, order=order)
    assert not run.findings, "\n".join(map(str, run.findings))
    (out,) = run.outputs.values()
    return out.astype(np.float32)
