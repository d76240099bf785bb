"""Products in loops in parts, side by side: the same numbers, or none where something is needed as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import CHIP, kernel
from tile_eg.cost_models import search_model
from tile_eg.egraph import saturate
from tile_eg.extract.exact import Exact
from tile_eg.extract.pricing import Pricer
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import Values, reachable
from tile_eg.search.alike import values_of_any_size
from tile_eg.search.compiler import meaning, plan_schedule
from tile_eg.transforms.any_size import at
from tile_eg.transforms.column_parts import in_column_parts

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"S": 128, "H": 1, "D": 32, "BM": 32, "BN": 64}


def example(name: str, **sizes: int) -> Values:
    return to_values(kernel((EXAMPLES / f"{name}.tile").read_text("utf-8"), **sizes))


def products(values: Values) -> list[tuple[int, int]]:
    return sorted((t.rows, t.cols) for t in reachable(values) if t.op == "matmul")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flash_attention", "flash_attention_causal"])
def test_attention_in_parts_computes_the_same_numbers(name):
    k = kernel((EXAMPLES / f"{name}.tile").read_text("utf-8"), **SMALL)
    values = in_column_parts(to_values(k), 2)
    assert values is not None
    graph = saturate(values, CHIP)
    found = Exact().extract(graph, CHIP, Pricer(graph, CHIP, search_model("analytic", CHIP)), 1)
    run = plan_schedule(found.best, CHIP).run(arrays_for(k), strict=False).as_meant(k, arrays_for(k))
    assert not run.findings, [str(f) for f in run.findings]
    for tensor, want in meaning(k, arrays_for(k)).items():
        np.testing.assert_allclose(run[tensor].astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-3)


def test_each_part_is_a_product_and_their_sums_are_added():
    values = example("flash_attention", **SMALL)
    assert products(values) == [(32, 32), (32, 64)]
    assert products(in_column_parts(values, 2)) == [(32, 32)] * 4


def test_parts_begin_where_the_keys_of_a_call_lie():
    text = """kernel sums[H: dyn](Q: f16[32, 16], K: f16[128, H, 16]) -> O: f32[H, 32] {
      grid h = H
      shared q: f16[32, 16], k: f16[64, 16]
      fragment s: f32[32, 64], l: f32[32] = 0
      q = Q[0, 0]
      for t in pipelined(2) {
        k = K[t*64:t*64 + 64, h, :]
        s = q @ k.T
        l = l + rowsum(s)
      }
      O[h, 0] = l }"""
    values = values_of_any_size(load_text(text).instantiate, {"H": 64})
    assert isinstance(values, Values)
    parted = in_column_parts(values, 2)
    assert parted is not None
    k = np.random.default_rng(1).integers(-3, 4, (128, 3, 16)).astype(np.float16)
    got = run_values(at(parted, {"H": 3}), {"Q": np.ones((32, 16), np.float16), "K": k})["O"]
    np.testing.assert_array_equal(got, np.repeat(k.sum((0, 2))[:, None], 32, 1))


def test_keys_that_do_not_fill_their_last_tile_stay_whole():
    assert in_column_parts(example("flash_attention", **SMALL | {"S": 100}), 2) is None


def test_parts_are_whole_fractals():
    assert in_column_parts(example("flash_attention", **SMALL), 8) is None


def test_a_product_that_goes_on_as_it_is_stays_whole():
    assert in_column_parts(example("gemm", M=64, N=64, K=64, BM=32, BN=64, BK=32), 2) is None
