"""egglog's native module works without the Python package around it, and beside it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = "e = native.load().EGraph(); e.run_program(*e.parse_program('(datatype M (N i64)) (N 1)'))"


def modules_after(*statements: str) -> set[str]:
    code = "; ".join(["import sys", "from tile_eg.rules import native", *statements, "print(' '.join(sys.modules))"])
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_the_native_module_runs_without_the_package() -> None:
    assert "egglog" not in modules_after(PROGRAM)


@pytest.mark.slow
def test_the_package_can_be_imported_afterwards() -> None:
    assert "egglog" in modules_after(PROGRAM, "import egglog", PROGRAM)
