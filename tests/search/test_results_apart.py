"""Outputs that have only inputs in common: each in tiles of its own, one behind the other in one launch."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from tile_eg.frontend.tensor.kernel import independent, shared_operand
from tile_eg.frontend.tensor.values import binary, matmul, reduce, tensor, unary
from tile_eg.frontend.text import load_text
from tile_eg.ir.index import BLOCK, evaluate
from tile_eg.ir.program import SyncAll, When, walk
from tile_eg.ops.types import F16
from tile_eg.report.schedule_tree import schedule_text
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower

PRODUCTS = """
kernel products[M=1600, K=256](X: f16[M, K], A: f16[K, 512], B: f16[K, 128]) -> (P: f32[M, 512], Q: f32[M, 128]) {
  P = X @ A
  Q = X @ B
}
"""
OF_ROWS = """
kernel of_rows[M=400, K=512](X: f16[M, K], A: f16[K, 1024], B: f16[K, 256]) -> (P: f32[M, 1024], Q: f32[M, 256]) {
  R = f16(f32(X) - max(f32(X), axis=1)[:, None])
  P = R @ A
  Q = R @ B
}
"""
BESIDE_A_SUM = """
kernel beside[M=200, K=256](X: f16[M, K], A: f16[K, 300], B: f16[K, 8]) -> (P: f32[M, 300], Q: f16[M, 8], S: f32[M]) {
  P = X @ A
  Q = X @ B
  S = sum(f32(X), axis=1)
}
"""
X, A, B = tensor("X", (32, 16), F16), tensor("A", (16, 8), F16), tensor("B", (16, 4), F16)


@lru_cache
def compiled(text: str, chip: str, without: tuple[str, ...]) -> Lowered:
    return lower(load_text(text).instantiate(), chip, search=search_options(without=without))


def products(text: str = PRODUCTS, chip: str = "910B2", without: tuple[str, ...] = ()) -> Lowered:
    return compiled(text, chip, without)


def check(low: Lowered, *functions) -> None:
    rng = np.random.default_rng(5)
    given = {t.name: rng.integers(-3, 4, t.shape).astype(np.float16) for t in low.kernel.tensors if not t.output}
    results = low.run(given)
    outputs = [t.name for t in low.kernel.tensors if t.output]
    for output, factor, of in zip(outputs, list(given)[1:], functions, strict=True):
        assert np.array_equal(results[output], of(given["X"].astype(np.float32) @ given[factor].astype(np.float32)))


def same(x: np.ndarray) -> np.ndarray:
    return x


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_each_product_has_tiles_of_its_own_and_cores_go_on_without_a_meeting(chip: str) -> None:
    low = products(PRODUCTS, chip)
    assert low.form.moves == ("results-apart",)
    assert not any(isinstance(n, SyncAll) for n in walk(low.program.cube))
    check(low, same, same)


@pytest.mark.slow
def test_the_tree_of_the_schedule_has_both() -> None:
    text = schedule_text(products().candidates[0].schedule)
    assert text.count("behind it, on the cores that are done") == 1


@pytest.mark.slow
def test_it_is_a_gain_and_can_be_left_out() -> None:
    together = products(without=("results-apart",))
    assert together.form.moves != ("results-apart",)
    assert products().candidates[0].microseconds < together.candidates[0].microseconds


@pytest.mark.slow
def test_what_needs_vector_cores_comes_before_what_does_not() -> None:
    low = products(PRODUCTS.replace("X @ B", "max(X @ B, 3) + 1").replace("1600", "600"))
    assert low.form.moves == ("results-apart",) and low.program.kernel_type == "MIX_AIC_1_2"
    check(low, same, lambda x: np.maximum(x, 3) + 1)


@pytest.mark.slow
def test_an_operand_that_all_of_them_need_comes_first() -> None:
    low = products(OF_ROWS)
    assert low.form.moves == ("results-apart",) and [t.name for t in low.program.shared] == ["operand"]
    rng = np.random.default_rng(5)
    given = {t.name: rng.integers(-3, 4, t.shape).astype(np.float16) for t in low.kernel.tensors if not t.output}
    rows = given["X"].astype(np.float32) - given["X"].astype(np.float32).max(axis=1, keepdims=True)
    results = low.run(given)
    assert all(np.array_equal(results[out], rows @ given[by].astype(np.float32)) for out, by in (("P", "A"), ("Q", "B")))


@pytest.mark.slow
def test_no_move_makes_a_launch_of_some_of_the_outputs() -> None:
    low = products(BESIDE_A_SUM)
    assert all({t.name for t in c.planned.program.tensors if t.output} == {"P", "Q", "S"} for c in low.ranked)


def test_the_cores_that_had_fewer_tiles_begin_with_the_next() -> None:
    low = products()
    start = low.candidates[0].schedule.graph.values.blocks % low.program.blocks
    (own,) = (n.condition for n in low.program.cube if isinstance(n, When))
    assert evaluate(own, {BLOCK: start}) and not evaluate(own, {BLOCK: start - 1})


def test_outputs_that_share_a_sum_stay_together() -> None:
    total = reduce("max", X, -1, keepdims=True)
    one, two, other = matmul(X, A), total, binary("add", X, total)
    assert [list(g) for g in independent({"P": one, "Q": two, "R": other})] == [["P"], ["Q", "R"]]


def test_an_operand_without_which_outputs_are_apart_is_found() -> None:
    rows = binary("sub", X, reduce("max", X, -1, keepdims=True))
    assert shared_operand({"P": matmul(rows, A), "Q": matmul(rows, B)}) is rows


def test_an_operand_that_is_used_otherwise_too_is_not_rounded_for_it() -> None:
    rows = binary("sub", X, reduce("max", X, -1, keepdims=True))
    assert shared_operand({"P": matmul(rows, A), "Q": matmul(rows, B), "R": unary("exp", rows)}) is None


def test_outputs_without_a_product_stay_in_one_grid() -> None:
    assert independent({"P": reduce("max", X, -1), "Q": reduce("sum", X, -1)}) == []
