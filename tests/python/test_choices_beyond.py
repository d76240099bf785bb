"""A choice by position where a tensor's end cuts off what one arm takes: what chooses it is not done, the rest is."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError

N = 10
X = np.random.default_rng(0).uniform(1, 2, (4, N)).astype(np.float32)
TEXT = """@T.prim_func
def f(X: T.Tensor((4, 10), "float32"), H: T.Tensor((4, 16), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        a, h = T.alloc_ub((4, 16), "float32"), T.alloc_ub((4, 16), "float32")
        T.tile.fill(h, 0.0)
        WAY
        T.copy(X[0, 0], a)
        for t in T.serial(15):
            for i, j in T.Parallel(4, 16):
                h[i, j] = h[i, j] + T.if_then_else(CHOICE)
        T.copy(h, H)
"""
WAYS = {"searched": "pass", "in order": 'T.printf("")'}
BY_TRIP = {"t + 1 < 10, a[i, t + 1], 1.0": 6.0, "t + 1 >= 10, 0.5, a[i, t + 1]": 3.0}
ROWS = X[:, 1:].sum(axis=1, keepdims=True) * np.ones(16)
BY_ELEMENT = "j < 8, 1.0, a[i, t + 1]"


def ran(choice: str, way: str) -> np.ndarray:
    kernel = prim_func(TEXT.replace("WAY", WAYS[way]).replace("CHOICE", choice))
    auto = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
    return tile_eg.jit(out_idx=[-1], pass_configs=auto, effort="none")(kernel)(X)


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("choice", BY_TRIP)
def test_the_arm_that_exists_is_taken(choice: str, way: str) -> None:
    np.testing.assert_allclose(ran(choice, way), ROWS + BY_TRIP[choice], rtol=1e-5)


@pytest.mark.slow
def test_elements_that_choose_the_other_arm_are_done() -> None:
    np.testing.assert_allclose(ran(BY_ELEMENT, "searched"), np.where(np.arange(16) < 8, 15, ROWS), rtol=1e-5)


def test_in_order_a_choice_between_elements_is_refused_with_a_way_out() -> None:
    with pytest.raises(TileError, match="only some elements choose that arm[^$]*pad_value, or write a loop for each arm"):
        ran(BY_ELEMENT, "in order")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_scalar_unit_takes_the_other_arm(way: str) -> None:
    kernel = prim_func("""@T.prim_func
def f(X: T.Tensor((10,), "float32"), H: T.Tensor((16,), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        a, h = T.alloc_ub((16,), "float32"), T.alloc_ub((16,), "float32")
        WAY
        T.tile.fill(h, 0.0)
        T.copy(X[0], a)
        for t in T.serial(16):
            h[t] = T.if_then_else(t < 8, 1.0, a[11])
        T.copy(h, H)
""".replace("WAY", WAYS[way]))
    auto = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
    found = tile_eg.jit(out_idx=[-1], pass_configs=auto, effort="none")(kernel)(X[0])
    np.testing.assert_array_equal(found, np.arange(16) < 8)
