"""The quick estimate: what it counts, and that it orders sizes as the predicted time does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_eg.chips import load_chip
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ops.types import Level
from tile_eg.sizing.anatomy import Anatomy
from tile_eg.sizing.estimate import Estimate, estimate
from tile_eg.timeline.reuse import hbm_seconds

EXAMPLES = Path(__file__).parents[2] / "examples"
CHIP = load_chip("910B2")


def values_of(name: str, **sizes: int):
    return to_values(load_text((EXAMPLES / f"{name}.tile").read_text()).instantiate(sizes))


def estimated(name: str, **sizes: int) -> Estimate:
    return estimate(values_of(name, **sizes), CHIP)


def test_small_tiles_of_a_large_product_take_longer():
    large = {"M": 4096, "N": 4096, "K": 4096}
    times = [estimated("gemm", **large, BM=m, BN=n, BK=64).cycles for m, n in ((128, 256), (128, 128), (64, 64), (16, 16))]
    assert times == sorted(times)


def test_short_rows_cost_nothing_where_panels_can_be_deeper():
    sizes = {"M": 4096, "N": 4096, "K": 4096, "BM": 128, "BN": 256}
    assert estimated("gemm", **sizes, BK=64).cycles == pytest.approx(estimated("gemm", **sizes, BK=256).cycles, rel=0.02)


def test_a_tile_beyond_the_edge_of_a_tensor_is_no_more_work():
    small = {"M": 16, "N": 4096, "K": 4096, "BN": 256, "BK": 64}
    assert estimated("gemm", **small, BM=128).cycles == estimated("gemm", **small, BM=16).cycles


def test_idle_cores_are_seen():
    few = estimated("gemm", M=768, N=512, K=4096, BM=128, BN=256)
    many = estimated("gemm", M=768, N=512, K=4096, BM=128, BN=128)
    assert (few.blocks, many.blocks) == (12, CHIP.cube_cores) and many.cycles < few.cycles


def test_rows_that_lie_anywhere_are_moved_one_by_one():
    text = (EXAMPLES / "moe/embedding.tile").read_text()
    texts = text, text.replace("W[t[i], j]", "W[i, j]")
    gathered, strided = (estimate(to_values(load_text(t).instantiate({})), CHIP) for t in texts)
    assert gathered.cycles - gathered.launch > 1.2 * (strided.cycles - strided.launch)


@pytest.mark.slow
def test_rows_that_are_gathered_for_products_take_no_room_in_ub():
    sizes = {"H": 64, "N": 4096, "K": 512, "C": 512, "R": 64}
    few, many = (estimated("sparse/sparse_mla", **sizes, BN=n).bytes[Level.UB] for n in (16, 32))
    assert many - few < 16 * (512 + 64) * 2


def test_sums_of_products_have_to_fit_l0c():
    assert estimated("gemm", BM=128, BN=256).bytes[Level.L0C] == 128 * 256 * 4
    assert estimated("gemm", BM=256, BN=256).excess(CHIP) == 2.0


def test_what_vector_cores_work_on_has_to_fit_ub_half_on_each():
    assert estimated("softmax", M=64, N=1024, BM=32).bytes[Level.UB] >= 32 * 1024 * 4 // 2
    assert estimated("softmax", M=64, N=8192, BM=64).excess(CHIP) > 1


def test_rows_on_vector_cores_are_not_padded_to_fractals():
    few, many = (estimated("rms_norm", M=4096, N=4096, BM=rows).bytes[Level.UB] for rows in (4, 16))
    assert few < many / 2


def test_a_block_that_fills_ub_cannot_load_beside_its_work():
    shape = {"M": 65536, "N": 1024}
    assert estimated("rms_norm", **shape, BM=32).cycles > 1.5 * estimated("rms_norm", **shape, BM=16).cycles


def test_a_row_that_stays_in_ub_for_a_second_loop_is_loaded_once():
    shape = {"M": 4096, "N": 32768, "BM": 1}
    stays, again = estimated("online_softmax", **shape, BN=8192), estimated("online_softmax", **shape, BN=4096)
    assert stays.cycles < 0.65 * again.cycles
    assert stays.bytes[Level.UB] >= 4 * 4 * 8192 and stays.excess(CHIP) <= 1


def test_a_row_that_does_not_fit_ub_is_loaded_twice():
    shape = {"M": 4096, "N": 131072, "BM": 1}
    long, short = (estimated("online_softmax", **shape, BN=n) for n in (8192, 2048))
    assert long.again and long.cycles > 0.95 * short.cycles


def test_reads_get_what_writes_leave_of_hbm():
    m, n = 65536, 1024
    seconds = estimated("softmax", M=m, N=n, BM=16).cycles / (CHIP.clock_mhz * 1e6)
    pushed = 4 * m * n - CHIP.l2_written / 2
    assert 1 < seconds / hbm_seconds(CHIP, 4 * m * n, pushed) < 1.1


@pytest.mark.parametrize(("rows", "halves"), [(1, False), (2, False), (4, True), (6, False), (8, True)])
def test_two_vector_cores_share_tiles_that_have_two_rows_for_each(rows, halves):
    assert Anatomy(values_of("rms_norm", M=64, N=1024, BM=rows)).halves is halves


def test_each_core_that_is_launched_costs():
    one, many = (estimated("vector_add", M=64, N=64, BM=rows, BN=64) for rows in (64, 4))
    assert many.cycles - one.cycles > 15 * CHIP.launch.core_us * CHIP.clock_mhz


def test_products_and_their_sums_lie_in_l0c_and_a_rescaled_sum_does_not():
    assert {t.op for t in Anatomy(values_of("gemm")).cube} == {"matmul", "binary", "arg", "proj"}
    assert {t.op for t in Anatomy(values_of("flash_attention")).cube} == {"matmul"}


def test_operations_of_a_nest_are_counted():
    anatomy = Anatomy(values_of("flash_attention_rows"))
    nests = [t for t in anatomy.terms if t.op == "nest"]
    assert nests and all(anatomy.scalar_operations(t) >= 1 for t in nests)


@pytest.mark.parametrize("name", ["gemm", "flash_attention", "flash_attention_rows", "softmax", "matmul_add", "vector_add"])
def test_every_example_has_an_estimate(name):
    found = estimated(name)
    assert found.cycles > 0 and found.excess(CHIP) <= 1


def test_rows_that_start_anywhere_in_a_line_take_longer_from_hbm():
    sizes = {"M": 64, "N": 8192, "K": 2048, "BM": 64, "BK": 64}
    aligned, crooked = (estimated("gemm", **sizes, BN=n) for n in (256, 272))
    assert crooked.blocks < aligned.blocks and crooked.cycles > 1.1 * aligned.cycles


PASSES = """
kernel passes[M=16, N=4096, BN=512](X: f16[M, N]) -> C: f32[M] {
  grid bx = 1
  shared x: f16[M, BN]
  fragment c: f32[M] = 0
"""
PASS = """
  for j%d in pipelined(ceildiv(N, BN)) {
    x = X[0, j%d*BN]
    c = c + rowsum(f32(x))
  }
"""


def test_loops_that_run_one_after_the_other_need_no_room_at_a_time():
    def room(passes: int) -> int:
        text = PASSES + "".join(PASS % (n, n) for n in range(passes)) + "  C[0] = c\n}\n"
        return estimate(to_values(load_text(text).instantiate({})), CHIP).bytes[Level.UB]

    slot = 16 * 512 * 2 // 2  # of each of two vector cores
    assert room(2) - room(1) < slot
