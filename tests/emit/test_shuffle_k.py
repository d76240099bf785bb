"""Sums over depth that each core begins at another trip: where they may, and that they are the same sums."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.chips import load_chip
from tile_eg.emit.shuffle_k import shuffled
from tile_eg.extract.base import Extractor
from tile_eg.extract.chaos import Random, Worst
from tile_eg.ir.index import BLOCK, variables
from tile_eg.ir.program import Gm, Instr, Tile, walk
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning
from tile_eg.search.persistent import offers
from tile_eg.search.planned import Planned

GEMM = """
kernel gemm[M=100, N=200, K=1536, BM=64, BN=64, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  C[bx*BM, by*BN] = c
}
"""
EXP = GEMM.replace("= c\n", "= exp(c * 0.01)\n")
BYTES = (
    GEMM.replace("f16[", "i8[")
    .replace("f32[BM, BN]", "i32[BM, BN]")
    .replace("C: f32", "C: i32")
    .replace("B: i8[K, N]", "B: i8[N, K]")
)
BYTES = BYTES.replace("b: i8[BK, BN]", "b: i8[BN, BK]").replace("B[k*BK, by*BN]", "B[by*BN, k*BK]").replace("a @ b", "a @ b.T")
UNPACKED = """
kernel unpacked[M=64, N=64, K=384, BK=64](A: f16[M, K], B: i8[N, K]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[M, BK], b: i8[N, BK], h: f16[N, BK]
  fragment c: f32[M, N] = 0
  for k in pipelined(K // BK) {
    a = A[0, k*BK]
    b = B[0, k*BK]
    h = f16(b)
    c += a @ h.T
  }
  C[0, 0] = c
}
"""
PLAIN = search_options(without=["shuffle-k", "split-k", "split-k-atomic", "whole-panels", "packed-operand"])


@cache
def plain(text: str, chip: str = "910B2", **sizes: int) -> Lowered:
    return lower(kernel(text, **sizes), chip, search=PLAIN)


def runs(low: Lowered, text: str, seed: int | None = None, **sizes: int) -> None:
    """The shuffled program gives the kernel's numbers, without a finding."""
    k = kernel(text, **sizes)
    program = shuffled(low.program)
    assert program is not None
    arrays = arrays_for(k)
    ran = Planned(program, low.chip).run(arrays, order=seed)
    assert not ran.findings
    for name, want in meaning(k, arrays).items():
        np.testing.assert_allclose(ran[name].astype(np.float64), want.astype(np.float64), rtol=4e-3, atol=1e-2)


@pytest.mark.few(5)
@pytest.mark.slow(but=2)
@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("text", [GEMM, EXP, BYTES], ids=["gemm", "exp", "bytes"])
def test_the_sums_are_the_same(text: str, seed: int | None, chip: str) -> None:
    runs(plain(text, chip), text, seed)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [{"M": 1, "N": 1}, {"M": 67, "N": 131, "K": 1024}, {"K": 512}])
def test_at_other_sizes_too(sizes: dict[str, int]) -> None:
    runs(plain(GEMM, **sizes), GEMM, **sizes)


@pytest.mark.slow
@pytest.mark.parametrize("extractor", [Worst(), Random(0), Random(1)], ids=["worst", "random", "random again"])
def test_any_schedule_may_be_shuffled_that_has_such_a_loop(extractor: Extractor) -> None:
    from tile_eg.cost_models import search_model
    from tile_eg.egraph import saturate
    from tile_eg.extract.pricing import Pricer
    from tile_eg.frontend.ssa import to_values
    from tile_eg.search.compiler import plan_schedule

    k, chip = kernel(GEMM), load_chip("910B2")
    graph = saturate(to_values(k), chip)
    best = extractor.extract(graph, chip, Pricer(graph, chip, search_model("analytic", chip)), 1).best
    program = shuffled(plan_schedule(best, chip).program)
    if program is not None:
        arrays = arrays_for(k)
        ran = Planned(program, chip).run(arrays)
        assert not ran.findings
        np.testing.assert_allclose(ran["C"], meaning(k, arrays)["C"], rtol=4e-3, atol=1e-2)


@pytest.mark.slow
def test_only_what_is_read_knows_the_core_and_buffers_turn_as_before() -> None:
    before, after = plain(GEMM).program, shuffled(plain(GEMM).program)
    assert after is not None
    for old, new in zip(walk(before.cube), walk(after.cube), strict=True):
        if isinstance(old, Instr) and isinstance(new, Instr):
            assert (old.dst, old.init, old.unit, old.rows, old.cols, old.depth) == (
                new.dst,
                new.init,
                new.unit,
                new.rows,
                new.cols,
                new.depth,
            )
            tiles = [(a, b) for a, b in zip(old.srcs, new.srcs, strict=True) if isinstance(a, Tile) and isinstance(b, Tile)]
            assert all(a.slot == b.slot for a, b in tiles)
    read = [s.offset for n in walk(after.cube) if isinstance(n, Instr) for s in n.srcs if isinstance(s, Gm)]
    assert read and all("% " in str(o) and BLOCK in variables(o) for o in read)


@pytest.mark.slow
def test_a_part_of_what_lies_in_l1_all_along_goes_with_it() -> None:
    """One operand is loaded once for all trips, which read their parts of it."""
    sizes = {"M": 16, "N": 512, "K": 512, "BM": 16}
    low = plain(GEMM, **sizes)
    runs(low, GEMM, **sizes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "sizes"),
    [(GEMM, {"K": 100}), (GEMM, {"K": 64}), (UNPACKED, {})],
    ids=["a short last trip", "one trip", "both cores"],
)
def test_other_loops_stay_as_they_are(text: str, sizes: dict[str, int]) -> None:
    assert shuffled(plain(text, **sizes).program) is None


@pytest.mark.slow
def test_cores_that_share_an_operand_are_faster_so() -> None:
    k = kernel(GEMM, M=512, N=512, K=512, BM=128, BN=256)
    low = lower(k)
    assert low.candidates[0].schedule.shuffled and "sums from another trip on in each" in str(low.schedule)
    assert low.cost.microseconds < 0.97 * lower(k, search=search_options(without=["shuffle-k"])).cost.microseconds


@pytest.mark.slow
def test_exact_math_goes_without() -> None:
    k = kernel(GEMM, M=512, N=512, K=512, BM=128, BN=256)
    assert not lower(k, search=search_options(exact_math=True)).candidates[0].schedule.shuffled


@pytest.mark.slow
def test_nothing_is_made_of_a_schedule_whose_plan_alone_is_shuffled() -> None:
    low = lower(kernel(GEMM, M=1024, N=2048, K=512, BM=128, BN=256))
    best = low.candidates[0]
    assert low.form is not None and best.schedule.shuffled and best.schedule.persistent
    assert not list(offers(low.form, best))
