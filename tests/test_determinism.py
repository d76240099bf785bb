"""One input gives one output, byte for byte, in any process: whatever order it hashes strings in, and wherever it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.orders import differing

EXAMPLES = Path(__file__).parents[1] / "examples"
GOLDEN = Path(__file__).parent / "golden"
QUICK = ("softmax", "gemm_exp")
SMALL = [str(seed) for seed in (3, 5, 7, 11, 14, 16, 19, 24, 26, 27, 28, 627)]
"""Seeds of random kernels that compile in a tenth of a second, and one that once went wrong behind others."""
PROGRAM = """
import sys
from pathlib import Path
from tile_eg.search.compiler import lower
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


@pytest.mark.slow
def test_a_process_anywhere_imports_the_tree_in_which_the_tests_lie(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import tile_eg; print(tile_eg.__file__)"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()
    assert Path(found).parents[1] == Path(__file__).parents[1]


@pytest.mark.slow
def test_two_processes_emit_the_same(tmp_path: Path) -> None:
    assert emitted(1, EXAMPLES, *QUICK) == emitted(4242, tmp_path, *QUICK)


@pytest.mark.slow
def test_all_examples_in_one_process_become_what_each_did_alone(tmp_path: Path) -> None:
    names = sorted(f.stem for f in EXAMPLES.glob("*.tile"))
    forms = ("asc", "host.cpp", "program")
    assert emitted(7, tmp_path, *names) == "".join(f"{(GOLDEN / f'{n}.{f}').read_text()}\n" for n in names for f in forms)


@pytest.mark.slow
def test_small_kernels_become_the_same_in_any_order() -> None:
    assert differing(SMALL, 2) == []


@pytest.mark.long
def test_a_hundred_kernels_become_the_same_in_any_order() -> None:
    """More compilations in one process than the whole suite has."""
    names = [*map(str, range(86)), "627", "755", "858", *sorted(f.stem for f in EXAMPLES.glob("*.tile"))]
    assert len(names) >= 100
    assert differing(names, 8) == []
