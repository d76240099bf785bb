"""Terms with bounds mean what the statements mean, with the same bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.inputs import drawn_sets
from tile_eg.ir.reference_terms import Meaning

EXAMPLES = Path(__file__).parents[1] / "examples"


def kernel(name, **sizes):
    return load_text((EXAMPLES / f"{name}.tile").read_text()).instantiate(sizes)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("softmax", {"M": 40, "N": 64}), ("flash_attention_causal", {"S": 100}), ("layer_norm", {"M": 40}), ("vector_add", {}),
        ("gemm_exp", {"M": 100, "N": 60, "K": 200}), ("gemm_int8", {"M": 64, "N": 64, "K": 96}), ("gelu_mul", {"M": 33}),
        ("rms_norm", {"M": 33}), ("online_softmax", {"M": 40}),
    ],
)  # fmt: skip
def test_the_outputs_and_their_bounds_are_those_of_the_statements(name, sizes):
    k = kernel(name, **{n: v for n, v in sizes.items() if n in load_text((EXAMPLES / f"{name}.tile").read_text()).sizes})
    values = to_values(k)
    (drawn,) = drawn_sets(k, ("wide",), 0)
    meaning = Meaning(values, k, drawn.arrays)
    for tile in range(values.blocks):
        meaning.observe(tile)
    for output, expected in drawn.meant.items():
        found = meaning.stored[output]
        value = found.flat.reshape(expected.value.shape).astype(np.float64)
        assert np.allclose(value, expected.value.astype(np.float64), rtol=1e-3, atol=1e-4, equal_nan=True)
        finite = np.isfinite(expected.allowed)
        own = 2 * found.spread.sum(0).reshape(expected.allowed.shape)
        assert np.allclose(own[finite], expected.allowed[finite], rtol=1e-3)


def test_an_observer_is_told_each_value_in_each_trip_of_its_loops():
    k = kernel("flash_attention", S=128)
    values, told = to_values(k), []
    (drawn,) = drawn_sets(k, ("uniform",), 0)
    Meaning(values, k, drawn.arrays).observe(0, lambda term, trips, expected: told.append((term, trips)))
    products = [trips for term, trips in told if term.op == "matmul"]
    assert sorted(products) == sorted([(("j", n),) for n in range(2)] * 2) and len(told) == len(set(told))
