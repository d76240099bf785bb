"""`run --sample` runs some blocks of a kernel, says which, and compares what they compute."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_eg.cli.app import run
from tile_eg.simulator.sample import sampled

DOUBLED = """
kernel doubled[M=70, N=96](A: f32[M, N]) -> C: f32[M, N] {
  grid (bx, by) = (ceildiv(M, 16), N // 32)
  shared a: f32[16, 32]
  a = A[bx*16, by*32]
  C[bx*16, by*32] = a * 2
}
"""
SUMMED = """
kernel summed[M=64, N=32](A: f32[M, N]) -> C: f32[16, N] {
  grid (bx) = (M // 16)
  shared a: f32[16, N]
  a = A[bx*16, 0]
  atomic C[0, 0] += a
}
"""
Captured = pytest.CaptureFixture[str]
FEW = ("--inputs", "uniform", "--effort", "none")


def file(folder: Path, text: str) -> str:
    (folder / "kernel.tile").write_text(text)
    return str(folder / "kernel.tile")


@pytest.mark.slow
@given(st.lists(st.integers(1, 7), min_size=1, max_size=3), st.integers(1, 40))
def test_a_sample_has_its_number_of_blocks_and_the_corners_first(grid: list[int], number: int) -> None:
    blocks = sampled(number, grid)
    assert len(blocks) == len(set(blocks)) == min(number, prod(grid)) and list(blocks) == sorted(blocks)
    assert blocks[0] == 0 and (number == 1 or blocks[-1] == prod(grid) - 1)
    if number >= 2 ** len(grid):
        ends = [{0, extent - 1} for extent in grid]
        corners = {i for i in range(prod(grid)) if all(p in e for p, e in zip(np.unravel_index(i, grid, "F"), ends, strict=True))}
        assert corners <= set(blocks)


def test_a_sample_is_spread_over_the_grid() -> None:
    assert sampled(5, [100]) == (0, 17, 50, 82, 99)


@pytest.mark.slow
def test_a_run_of_a_sample_says_what_it_ran_and_what_it_compared(tmp_path: Path, capsys: Captured) -> None:
    assert run(["run", file(tmp_path, DOUBLED), "--sample", "5", *FEW]) == 0
    out = capsys.readouterr().out
    assert "ran a sample, 5 of 15 blocks (0, 4, 7, 10, 14), as AIV_ONLY in the simulator: good" in out
    assert f"C, uniform inputs: {70 * 96 - 3 * 16 * 32 - 2 * 6 * 32} of 6720 elements are not computed, and not compared" in out


@pytest.mark.slow
def test_what_a_sample_computes_is_kept_and_the_rest_is_nan(tmp_path: Path, capsys: Captured) -> None:
    command = ["run", file(tmp_path, DOUBLED), "--sample", "2", *FEW, "--json", "--save", str(tmp_path)]
    assert run(command) == 0
    told = json.loads(capsys.readouterr().out)
    a, c = np.load(tmp_path / "A.npy"), np.load(tmp_path / "C.npy")
    assert (told["sample"], told["blocks"]) == ([0, 14], 15)
    assert told["outputs"][0]["not_computed"] == np.isnan(c).sum() == 6720 - 16 * 32 - 6 * 32
    np.testing.assert_array_equal(c[:16, :32], 2 * a[:16, :32])
    np.testing.assert_array_equal(c[64:, 64:], 2 * a[64:, 64:])


@pytest.mark.slow
def test_a_sample_that_is_no_smaller_than_the_grid_is_the_whole_run(tmp_path: Path, capsys: Captured) -> None:
    assert run(["run", file(tmp_path, DOUBLED), "--sample", "15", *FEW]) == 0
    assert "ran 15 blocks as AIV_ONLY" in capsys.readouterr().out


@pytest.mark.slow
def test_blocks_that_add_to_one_tensor_have_no_sample(tmp_path: Path, capsys: Captured) -> None:
    assert run(["run", file(tmp_path, SUMMED), "--sample", "2", *FEW]) == 1
    assert "no blocks of summed run alone: they add to C, as others may" in capsys.readouterr().err
