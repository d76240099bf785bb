"""Triangular systems by columns: the same numbers, wherever numbers are known to be 0 but for rows before each."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tests.transforms.test_split_k import whole_numbers
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import reachable
from tile_eg.search.compiler import lower, meaning
from tile_eg.transforms.solved_by_columns import solved_by_columns

SYSTEM = """
kernel system[H=2, C=16, D=64](A: f32[H, C, C], B: f32[H, C, D]) -> U: f32[H, C, D] {{
  grid h = H
  shared   a: f32[C, C], u: f32[C, D]
  fragment r: f32[C]
  a = A[h, 0, 0]
  u = B[h, 0, 0]
  parallel (i, j) in (C, C) {{ a[i, j] = select({holds}, a[i, j], {other}) }}
  for i in serial({trips}) {{
    r = {row}
    u[i, :] = {made}
  }}
  U[h, 0, 0] = u
}}
"""
PARTS = {"holds": "i > j", "other": "0", "trips": "1, C", "row": "a[i, :]", "made": "u[i, :] - colsum(u * r[:, None])"}
SAME = {
    "rows before": {},
    "the other way round": {"holds": "i <= j", "other": "a[i, j]"},
    "added": {"made": "colsum(r[:, None] * u) + u[i, :]"},
    "from the first row on": {"trips": "C"},
}
OTHERS = {
    "its own row": {"holds": "i >= j"},
    "rows behind": {"holds": "i < j"},
    "ones elsewhere": {"other": "1"},
    "not all rows": {"trips": "2, C"},
    "a row less": {"made": "colsum(u * r[:, None]) - u[i, :]"},
    "another row": {"row": "a[i - 1, :]"},
}


def system(parts: dict[str, str]) -> str:
    text = SYSTEM.format(**PARTS | parts)
    return text.replace("a[i, j], a[i, j])", "0, a[i, j])")


@pytest.mark.parametrize("parts", SAME.values(), ids=SAME)
def test_the_meaning_stays(parts: dict[str, str]) -> None:
    k = kernel(system(parts))
    made, arrays = solved_by_columns(to_values(k)), whole_numbers(k)
    arrays = {name: np.sign(x) if name == "A" else x for name, x in arrays.items()}
    assert made is not None and not any(t.op == "reduce" for t in reachable(made))
    assert np.array_equal(run_values(made, arrays)["U"], meaning(k, arrays)["U"])


@pytest.mark.parametrize("parts", OTHERS.values(), ids=OTHERS)
def test_what_takes_other_rows_stays_as_it_is(parts: dict[str, str]) -> None:
    assert solved_by_columns(to_values(kernel(system(parts)))) is None


def test_numbers_of_the_state_itself_are_those_that_it_begins_with() -> None:
    k = kernel(system({"row": "u[i, :]"}), D=16)
    assert solved_by_columns(to_values(k)) is None  # what is loaded is not known to be 0 anywhere
    k = kernel(system({"row": "u[i, :]"}).replace("  for i", "  u = a\n  for i"), D=16)
    made, arrays = solved_by_columns(to_values(k)), {name: np.sign(x) for name, x in whole_numbers(k).items()}
    assert made is not None and np.array_equal(run_values(made, arrays)["U"], meaning(k, arrays)["U"])


def test_the_search_solves_by_columns() -> None:
    assert lower(kernel(system({}), C=32), "910B2").form.moves == ("solved-by-columns",)
