"""The machine's bounds: worked out by hand for sizes where that is easy, and below what any schedule takes."""

from __future__ import annotations

import pytest

from benchmarks.experts.attention import attention
from benchmarks.experts.attention import expert as expert_attention
from benchmarks.experts.gemm import expert, gemm
from benchmarks.targets import bounds
from tile_eg.chips import load_chip
from tile_eg.timeline.engine import run

CHIP = load_chip("910B2")


def test_a_cube_core_takes_a_fractal_in_a_cycle_and_24_share_the_work() -> None:
    assert bounds.cube(CHIP, 256, 256, 384) == pytest.approx(256 * 256 * 384 / 16**3 * 0.992 / 24 / 1800)


def test_dimensions_are_padded_to_fractals() -> None:
    assert bounds.cube(CHIP, 1, 17, 16) == bounds.cube(CHIP, 16, 32, 16)


def test_hbm_takes_of_what_is_written_what_l2_has_no_room_for() -> None:
    reading = bounds.hbm(CHIP, 1.49e9, 0)
    assert reading == pytest.approx(1000) and bounds.hbm(CHIP, 1.49e9, CHIP.l2_written) == reading
    assert bounds.hbm(CHIP, 1.49e9, CHIP.l2_written + 1e9) == pytest.approx(2000)


def test_a_kernel_that_reads_only_gets_1_49() -> None:
    assert bounds.hbm(CHIP, 1.49e9, 0) == pytest.approx(1000)


def test_a_bound_is_the_largest_of_its_times() -> None:
    assert bounds.Bound({"cube": 3.0, "HBM": 4.0}).microseconds == 4.0
    assert bounds.Bound({"cube": 3.0, "HBM": 4.0}).by == "HBM"


def test_a_large_product_is_bound_by_the_cube_or_by_its_loads() -> None:
    bound = bounds.gemm(CHIP, 8192, 8192, 8192)
    assert bound.by in ("cube", "MTE2")
    assert bound.microseconds < 1.05 * bound.times["cube"]


@pytest.mark.parametrize("size", [(512, 512, 512), (4096, 4096, 4096), (20, 6144, 16384)], ids=str)
def test_no_expert_product_is_faster_than_the_bound(size: tuple[int, int, int]) -> None:
    assert run(gemm(expert(*size)), CHIP).core_us > bounds.gemm(CHIP, *size).microseconds


@pytest.mark.slow
@pytest.mark.parametrize("head", [64, 128])
def test_no_expert_attention_is_faster_than_the_bound(head: int) -> None:
    program = attention(expert_attention(4096, 4096, head, 16))
    assert run(program, CHIP).core_us > bounds.attention(CHIP, 16, 4096, 4096, head).microseconds
