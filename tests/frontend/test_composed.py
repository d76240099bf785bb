"""Operations that are made of others are as near to their meaning as the table of operations says."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.reference_bounds import run_with_bounds
from tile_eg.ir.reference_values import run_values
from tile_eg.ops.elementwise import BINARY, UNARY

SOURCE = """
kernel k[N=512](X: {dtype}[N], Y: {dtype}[N]) -> C: {dtype}[N] {{
  grid bx = 1
  shared x: {dtype}[N], y: {dtype}[N]
  x = X[0]
  y = Y[0]
  C[0] = {value}
}}
"""
MADE = [f"{op.tile[0]}(x)" for op in UNARY.values() if op.made_of_others]
PAIRS = [f"x {op.sign} y" if op.sign else f"{op.name}(x, y)" for op in BINARY.values() if op.made_of_others and op.name != "xor"]
POWERS = [f"x ** {n}" for n in (2, 3, 5, 8, 0.5, "(-1)", "(-2)", 1.5)]
SPECIAL = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1e-6, -1e-6, 30.0, -30.0, 88.0, -88.0, -6e3, np.inf, -np.inf, np.nan]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("value", [*MADE, *PAIRS, *POWERS, "floor(x)", "round_away(x)"])
def test_it_is_within_its_bound(value: str, dtype: str) -> None:
    k = load_text(SOURCE.format(dtype=dtype, value=value)).instantiate()
    random = np.random.default_rng(0)
    pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL])
    drawn = random.uniform(-9, 9, (512 - len(pairs), 2)) * random.choice([0.01, 0.3, 1, 5], (512 - len(pairs), 1))
    numbers = np.concatenate([pairs, drawn]).T
    given = {n: x.astype(numpy_dtype(k.tensors[0].dtype)) for n, x in zip("XY", numbers, strict=True)}
    want, found = run_with_bounds(k, given)["C"], run_values(to_values(k), given)["C"]
    value_, there = want.value.astype(np.float64), found.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(there - value_) <= want.allowed
    same = (there == value_) | (np.isnan(there) & np.isnan(value_)) | near
    wrong = ~(same | np.isinf(want.allowed))
    assert not wrong.any(), list(zip(*numbers[:, wrong], there[wrong], value_[wrong], strict=True))[:5]


@pytest.mark.parametrize("op", ["x < y", "x <= y", "x > y", "x >= y", "x == y", "x != y"])
@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "i32"])
def test_whole_numbers_are_compared_exactly(op: str, dtype: str) -> None:
    k = load_text(SOURCE.format(dtype=dtype, value=f"select({op}, x, y)")).instantiate()
    limits = np.iinfo(k.tensors[0].dtype.numpy)
    ends = [limits.min, limits.min + 1, -1, 0, 1, limits.max - 1, limits.max]
    pairs = np.array([(a, b) for a in ends for b in ends if a >= limits.min and b >= limits.min])
    rest = np.random.default_rng(1).integers(limits.min, limits.max, (512 - len(pairs), 2), endpoint=True)
    x, y = np.concatenate([pairs, rest]).T.astype(k.tensors[0].dtype.numpy)
    found = run_values(to_values(k), {"X": x, "Y": y})["C"]
    assert np.array_equal(found, np.where(eval(op), x, y))
