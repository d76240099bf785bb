"""What copies and loops in Python mean: the kernel that is read, and its values, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tile_eg.frontend.checks import check
from tile_eg.frontend.python import kernel_of
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.search.compiler import meaning

from .windows import Program, drawn


def inputs(p: Program, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"X": (p.blocks, p.rows * p.length), "Z": (p.blocks, p.rows, p.length)}
    return {name: rng.integers(-4, 5, shape).astype(np.float32) for name, shape in shapes.items()}


def check_values(seed: int) -> None:
    program = drawn(seed)
    arrays, kernel = inputs(program, seed), kernel_of(program.kernel(f"<windows {seed}>"))
    wanted = program.run(arrays["X"], arrays["Z"])
    check(kernel)
    found = np.asarray(run_values(to_values(kernel), arrays)["Q"]).reshape(wanted.shape)
    assert np.array_equal(meaning(kernel, arrays)["Q"], wanted), program
    assert np.array_equal(found, wanted), program


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_rows_that_are_moved_about(first: int) -> None:
    for seed in range(first, first + 20):
        check_values(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_rows_that_are_moved_about_in_many_programs(first: int) -> None:
    for seed in range(first, first + 100):
        check_values(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_rows_that_are_moved_about_in_the_emitted_text(seed: int) -> None:
    program = drawn(seed)
    arrays = inputs(program, seed)
    kernel = tile_eg.compile(program.kernel(f"<windows {seed}>"), out_idx=[-1], effort="none")
    assert np.array_equal(kernel(arrays["X"], arrays["Z"]), program.run(arrays["X"], arrays["Z"])), program
