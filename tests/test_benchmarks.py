"""The comparison with Triton says where Triton is, and why there is nothing of it where it is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.simulator import __main__ as simulator_page
from benchmarks.simulator import measured as simulated
from benchmarks.triton_ascend import __main__ as page
from benchmarks.triton_ascend import compared
from benchmarks.triton_ascend.compared import PYTHON, Row, interpreter, rows


def _interpreter(folder: Path, missing: str) -> str:
    """A program that answers as an interpreter does which lacks these packages."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\necho '{missing}'\n")
    program.chmod(0o755)
    return str(program)


def test_the_interpreter_that_is_named_has_triton(tmp_path: Path) -> None:
    python = _interpreter(tmp_path, "[]")
    assert interpreter(python) == (python, "")


def test_the_environment_names_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = _interpreter(tmp_path, "[]")
    monkeypatch.setenv(PYTHON, python)
    assert interpreter(None) == (python, "")


def test_what_an_interpreter_lacks_is_told(tmp_path: Path) -> None:
    python = _interpreter(tmp_path, '["triton", "ascendnpuir"]')
    assert interpreter(python) == (None, f"{python} has no triton, ascendnpuir")


def test_an_interpreter_that_is_not_there_is_told() -> None:
    assert interpreter("/no/such/python")[1].startswith("/no/such/python does not run")


def test_without_triton_ours_is_printed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "interpreter", lambda named: (None, "it has no triton"))
    monkeypatch.setattr(page, "rows", lambda there: [Row("a", lambda: 0.5, None, 0.25)])
    head, _, line = page.compared().splitlines()
    assert head == "Processor seconds; none of Triton's, as it has no triton:" and line.split() == ["a", "0.50", "0.25", "-", "-"]


def test_a_ratio_is_ours_to_tritons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "interpreter", lambda named: (sys.executable, ""))
    monkeypatch.setattr(page, "rows", lambda there: [Row("a", lambda: 0.5, lambda: 0.25)])
    assert page.compared().splitlines()[-1].split() == ["a", "0.50", "-", "0.25", "2.0x"]


def test_every_size_is_compared_where_triton_is() -> None:
    assert [r.theirs is not None for r in rows("python") if "cubed" in r.name and "matrix" not in r.name] == [True] * 5


def test_the_sizes_of_a_product_are_told_apart_by_a_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared, "_warm", lambda example, sizes: 0.1 if "M=512" in sizes else 0.3)
    (row,) = [r for r in rows(None) if "slowest" in r.name]
    assert row.ours() == pytest.approx(3) and row.aim == 2


def test_the_simulators_page_holds_a_run_against_numpy_and_its_limit() -> None:
    case = simulated.cases()[0]
    row = simulator_page.page([(case, simulated.Measured(seconds=2.0, processor=3.0, numpy=1.5))]).splitlines()[-1]
    assert row.split() == ["gemm", "4096", "x", "4096", "x", "4096", "3.00", "s", "1.50", "s", "2.0x", "2.00", "s", "25", "s"]


@pytest.mark.slow
def test_a_simulated_kernel_of_the_page_runs_and_is_measured() -> None:
    small = simulated.measured(simulated.cases(scale=64)[0])
    assert small.seconds > 0 and small.processor > 0
