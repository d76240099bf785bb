"""One input gives one output, byte for byte, whatever order a process hashes strings in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def emitted(name: str, seed: int, *options: str) -> str:
    command = [sys.executable, "-m", "tile_eg", "emit", str(EXAMPLES / f"{name}.tile"), *options]
    done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--program",)], ids=["text", "program"])
@pytest.mark.parametrize("name", ["flash_attention", "gemm_exp", "softmax"])
def test_two_processes_emit_the_same(name, options):
    first, second = (emitted(name, seed, *options) for seed in (1, 4242))
    assert first and first == second
