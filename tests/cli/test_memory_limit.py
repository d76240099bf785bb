"""How much memory a kernel needs, on the chip and in the simulator, on the command line."""

from __future__ import annotations

import pytest

from tile_eg.cli.app import run


def test_check_refuses_what_the_chip_cannot_hold(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--set", "M=262144", "--set", "N=131072"]
    assert run(["check", "examples/gemm.tile", *sizes]) == 1
    said = capsys.readouterr().err
    held = "68,719,476,736 bytes (64 GiB)"
    assert f"of them `C` {held}, and the HBM of 910B2 has {held}" in said and "^^^" in said
    assert run(["check", "examples/gemm.tile", "--chip", "950", *sizes]) == 0


@pytest.mark.slow
def test_the_memory_of_a_run_is_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "examples/vector_add.tile", "--memory", "0.005"]) == 1
    said = capsys.readouterr().err
    assert "more memory than the 5,368,709 bytes" in said and "--memory GIB" in said
    assert run(["run", "examples/vector_add.tile", "--memory", "0.1"]) == 0
