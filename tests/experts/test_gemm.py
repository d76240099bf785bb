"""Expert products are real programs: they compute C, tails included, and break none of the machine's rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.experts.gemm import Gemm, expert, gemm, swizzled
from tile_eg.ir.index import evaluate, var

from .running import halves, ran

pytestmark = pytest.mark.slow(but=1)

PARTED = Gemm(512, 768, 512, (128, 256), 128, 256, core=(256, 512), rounds=2)


def close(g: Gemm, order: int | None = None) -> bool:
    a, b = halves(g.m, g.k), halves(g.k, g.n, seed=1)
    found = ran(gemm(g), {"A": a, "B": b if g.b == "kn" else np.ascontiguousarray(b.T)}, order)
    return np.allclose(found, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)


def walk(down: int, across: int, window: int) -> list[tuple[int, int]]:
    row, col = swizzled(var("at"), down, across, window)
    return [(evaluate(row, {"at": n}), evaluate(col, {"at": n})) for n in range(down * across)]


@pytest.mark.slow
@pytest.mark.parametrize("size", [(512, 768, 512), (300, 500, 200), (16, 512, 576)], ids=str)
def test_the_expert_s_product_is_right(size: tuple[int, int, int]) -> None:
    assert close(expert(*size, cores=3))


@pytest.mark.slow
def test_a_partition_with_panels_of_different_depth_is_right() -> None:
    assert close(PARTED)


def test_a_transposed_right_operand_is_right() -> None:
    assert close(replace(PARTED, b="nk"))


@pytest.mark.parametrize("size", [(200, 300, 64), (300, 260, 32)], ids=str)
def test_tiles_of_the_last_turn_in_parts_are_right(size: tuple[int, int, int]) -> None:
    g = Gemm(*size, (128, 128), 32, 32, l0_k=32, l0_slots=1, persistent=4, swizzle=2, split_last=True)
    assert g.parts != (1, 1)
    assert close(g)


@pytest.mark.parametrize(("cores", "parts"), [(32, (2, 2)), (16, (1, 2)), (12, (1, 1)), (8, (1, 1))])
def test_a_tile_is_cut_into_no_more_parts_than_there_are_cores_for(cores: int, parts: tuple[int, int]) -> None:
    assert Gemm(512, 1024, 64, (256, 256), 64, 64, persistent=cores, split_last=True).parts == parts


def test_an_unfavourable_order_gives_the_same_product() -> None:
    assert close(expert(300, 500, 576, cores=2), order=1)


@pytest.mark.parametrize("down", [5, 6])
def test_the_walk_over_tiles_visits_each_of_them_once(down: int) -> None:
    assert sorted(walk(down, 4, 3)) == [(i, j) for i in range(down) for j in range(4)]


def test_the_walk_goes_down_a_window_of_three_rows_before_it_goes_across() -> None:
    assert walk(6, 4, 3)[:4] == [(0, 0), (1, 0), (2, 0), (0, 1)]
