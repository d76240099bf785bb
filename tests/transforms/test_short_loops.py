"""Short loops that only compute, as the steps of their trips: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tests.transforms.test_split_k import whole_numbers
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import reachable
from tile_eg.search.compiler import lower, meaning
from tile_eg.transforms.short_loops import with_short_loops_in_steps

BUTTERFLIES = """
kernel butterflies[M=32, N=64, BM=16](X: f32[M, N], W: f32[N]) -> Y: f32[M, N] {{
  grid bx = ceildiv(M, BM)
  shared   x: f32[BM, N], y: f32[BM, N], w: f32[N]
  x = pad(X[bx*BM, 0], 0)
  w = W[0]
  {loops}
  Y[bx*BM, 0] = x * 2
}}
"""
STEP = "y[0:8, :] = x[0:8, :] + x[8:16, :]  y[8:16, :] = x[0:8, :] - x[8:16, :]"
LOOPS = {
    "one": f"for s in serial(3) {{ {STEP}  x = y }}",
    "its number": f"for s in serial(1, 4) {{ {STEP}  x = y * s + w[None, :] }}",
    "two": f"for s in serial(3) {{ {STEP}  x = y }}  for s in serial(2) {{ {STEP}  x = abs(y) }}",
}


@pytest.mark.parametrize("loops", LOOPS.values(), ids=LOOPS)
def test_the_meaning_stays(loops: str) -> None:
    k = kernel(BUTTERFLIES.format(loops=loops))
    steps, arrays = with_short_loops_in_steps(to_values(k)), whole_numbers(k)
    assert steps is not None and not any(t.op == "loop" for t in reachable(steps))
    assert np.array_equal(run_values(steps, arrays)["Y"], meaning(k, arrays)["Y"])


@pytest.mark.parametrize(
    "loops",
    [
        "for s in serial(2) { y = X[s*BM, 0]  x = x + y }",
        "for s in serial(100) { x = abs(x) * w[None, :] }",
        "for s in serial(3) { for t in serial(2) { x = abs(x) } }",
    ],
    ids=["a load", "many steps", "a loop in a loop"],
)
def test_other_loops_stay_as_they_are(loops: str) -> None:
    assert with_short_loops_in_steps(to_values(kernel(BUTTERFLIES.format(loops=loops)))) is None


@pytest.mark.slow
def test_the_search_takes_it_and_the_simulator_computes_the_same() -> None:
    k = kernel(BUTTERFLIES.format(loops=LOOPS["one"]))
    lowered, arrays = lower(k, "910B2"), whole_numbers(k)
    assert "loop-in-steps" in lowered.form.moves
    assert np.array_equal(lowered.run(arrays)["Y"], meaning(k, arrays)["Y"])
