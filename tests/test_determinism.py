"""One input gives one output, byte for byte, in any process: whatever order it hashes strings in, and wherever it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
QUICK = ("softmax", "gemm_exp")
PROGRAM = """
import sys
from pathlib import Path
from tile_eg.compiler import lower
from tile_eg.frontend.text import load_text

for name in sys.argv[2:]:
    made = lower(load_text((Path(sys.argv[1]) / f"{name}.tile").read_text(), f"{name}.tile").instantiate({}))
    print(made.source, made.host, made.program, sep="\\n")
"""


def emitted(seed: int, where: Path, *names: str) -> str:
    """All that the examples become in one process of its own."""
    command = [sys.executable, "-c", PROGRAM, str(EXAMPLES), *names]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.run(command, env=environment, cwd=where, capture_output=True, text=True, check=True).stdout


def test_two_processes_emit_the_same(tmp_path: Path) -> None:
    assert emitted(1, EXAMPLES, *QUICK) == emitted(4242, tmp_path, *QUICK)


@pytest.mark.slow
def test_an_example_does_not_depend_on_those_compiled_before_it(tmp_path: Path) -> None:
    names = sorted(f.stem for f in EXAMPLES.glob("*.tile"))
    together = emitted(7, EXAMPLES, *names)
    assert together == "".join(emitted(40 + n, tmp_path, name) for n, name in enumerate(names))
