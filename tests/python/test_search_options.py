"""The options of the search in Python: on `jit`, on `load`, and for the whole process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.rules.user import remove

EXAMPLES = Path(__file__).parents[2] / "examples"
MINE = '(rewrite (Un "exp" x) (Un "exp" (BinS "mul" x 1.0)) :ruleset algebra :name "mine" :law equal)'


def matched(kernel: tile_eg.Lowered) -> set[str]:
    return {rule for phase in kernel.phases for rule, n in phase.matches.items() if n}


def exponential(**options: object):
    @tile_eg.jit(out_idx=[-1], **options)
    @T.prim_func
    def exponential(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((32, 64), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] = T.exp(a[i, j])
            T.copy(a, B[bx * 32, 0])

    return exponential


@pytest.mark.slow
def test_jit_takes_an_effort() -> None:
    assert exponential(effort="none").compile().extraction.extractor == "greedy"
    assert exponential().compile().extraction.extractor == "exact"


@pytest.mark.slow
def test_jit_takes_rules_to_leave_out() -> None:
    with pytest.raises(TileError, match="left out"):
        exponential(without=["v-unary"]).compile()


@pytest.mark.slow
def test_jit_takes_rules_of_the_users() -> None:
    assert "mine" in matched(exponential(rules=[MINE]).compile())


def test_what_is_wrong_with_an_option_is_told_where_jit_stands() -> None:
    with pytest.raises(TileError, match="unknown effort 'ful'"):
        exponential(effort="ful")


@pytest.mark.slow
def test_a_kernel_with_other_options_is_another_lowered_kernel() -> None:
    assert exponential(effort="none").compile() is not exponential().compile()
    assert exponential(effort="none").compile() is exponential(effort="none").compile()


@pytest.mark.slow
def test_load_takes_the_same_options() -> None:
    softmax = tile_eg.load(EXAMPLES / "softmax.tile", effort="none", exact_math=True)
    assert softmax.compile().search.exact_math


@pytest.mark.slow
def test_an_added_theory_takes_part_in_every_search_until_it_is_removed() -> None:
    theory = tile_eg.rules.add(MINE)
    try:
        assert "mine" in matched(exponential().compile())
    finally:
        remove(theory)
    assert "mine" not in matched(exponential().compile())


@pytest.mark.slow
def test_a_kernel_computes_the_same_under_every_effort() -> None:
    a = np.linspace(-1, 1, 32 * 64, dtype=np.float32).reshape(32, 64)
    none, full = (exponential(effort=e)(a) for e in ("none", "full"))
    np.testing.assert_array_equal(none, full)
