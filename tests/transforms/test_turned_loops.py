"""Loops that take rows apart, in turned tiles: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tests.transforms.test_split_k import whole_numbers
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import reachable
from tile_eg.search import search_options
from tile_eg.search.compiler import lower, meaning
from tile_eg.search.one_text import lower_for_any_size
from tile_eg.transforms.turned_loops import in_turned_loops

HADAMARD = """
kernel hadamard[M=32, N=64, BM=16](X: f32[M, N], W: f32[N]) -> Y: f32[M, N] {{
  grid bx = ceildiv(M, BM)
  fragment x: f32[BM, N], y: f32[BM, N], w: f32[N]
  x = pad(X[bx*BM, 0], 0)
  w = W[0]
  for s in serial(3) {{
    parallel (i, j) in (BM, N//2) {{ y[i, j] = x[i, 2*j] + x[i, 2*j + 1] }}
    parallel (i, j) in (BM, N//2) {{ y[i, j + N//2] = x[i, 2*j] - x[i, 2*j + 1] }}
    {step}
  }}
  Y[bx*BM, 0] = x * 2
}}
"""
STEPS = {
    "sums": "x = y",
    "functions": "x = abs(y) * w[None, :] - rowmax(y)[:, None] + s",
    "positions": "parallel (i, j) in (BM, N) { x[i, j] = select(j < i + 20, y[i, j], j - s) }",
    "columns": "x = y - colmax(y)[None, :]  x[:, 0:8] = y[:, 16:24]",
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_the_meaning_stays(step: str) -> None:
    k = kernel(HADAMARD.format(step=step))
    turned = in_turned_loops(to_values(k))
    assert turned is not None
    arrays = whole_numbers(k)
    assert np.array_equal(run_values(turned, arrays)["Y"], meaning(k, arrays)["Y"])


def test_nothing_is_taken_out_of_rows_in_the_loop() -> None:
    turned = in_turned_loops(to_values(kernel(HADAMARD.format(step="x = y"))))
    assert [t.args[0] for t in reachable(turned) if t.op == "whole"].count("transpose") == 2
    assert all(t.args[0] != "every" for t in reachable(turned) if t.op == "whole")


@pytest.mark.parametrize(
    "text",
    [
        HADAMARD.format(step="x = cumsum(y, 1)"),
        HADAMARD.format(step="x = y").replace("BM=16", "BM=8"),
        HADAMARD.format(step="x = y  x[0:4, :] = y[4:8, :]"),
        HADAMARD.format(step="x = y").replace("x[i, 2*j]", "x[i, j]").replace("x[i, 2*j + 1]", "x[i, j]"),
    ],
    ids=["another operation on whole tiles", "no squares", "half blocks", "rows as they are"],
)
def test_other_loops_stay_as_they_are(text: str) -> None:
    assert in_turned_loops(to_values(kernel(text))) is None


def test_the_search_takes_it() -> None:
    assert "turned-loops" in lower(kernel(HADAMARD.format(step="x = y")), "910B2").form.moves


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_the_simulator_computes_the_same(chip: str) -> None:
    k = kernel(HADAMARD.format(step="x = y").replace("M=32", "M=40"))
    lowered, arrays = lower(k, chip), whole_numbers(k)
    assert "turned-loops" in lowered.form.moves
    assert np.array_equal(lowered.run(arrays)["Y"], meaning(k, arrays)["Y"])


@pytest.mark.slow
def test_a_kernel_for_all_sizes_takes_it() -> None:
    template = load_text(HADAMARD.format(step="x = y").replace("M=32", "M: dyn"))
    found, *_ = lower_for_any_size(template.instantiate, {"M": 4096}, "910B2", search_options())
    assert "turned-loops" in found.form.moves
