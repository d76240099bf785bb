"""Products whose short rows are copied into strips first: the numbers are right, and the search takes it where it is faster."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tests.transforms.test_packed_operand import BATCHED, BOTH_DOWN, BYTES, GEMM, TRANSPOSED
from tile_eg.chips import load_chip
from tile_eg.explore.runners import explained
from tile_eg.explore.why_not import why_not
from tile_eg.ir.index import ZERO
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program.instructions import Instr, SyncAll, walk
from tile_eg.search import search_options
from tile_eg.search.compiler import Candidate, Lowered, lower, meaning
from tile_eg.search.packed_operand import made_of

EXAMPLES = Path(__file__).parents[2] / "examples"
ADDED = """
kernel added[M=1024, N=768, K=250, BM=32, BN=64, BK=64](A: f16[M, K], B: f16[K, N], D: f16[M, N]) -> E: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, BK], b: f16[BK, BN], d: f16[BM, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  d = D[bx*BM, by*BN]
  E[bx*BM, by*BN] = c + f32(d)
}
"""
LARGE = {"M": 4096, "N": 4096, "K": 4096, "BM": 128, "BN": 256}

AS_WRITTEN = search_options(without=("blocks-together",))


def in_strips(k: Kernel, chip: str = "910B2") -> Candidate:
    """The kernel with its operand copied, whether that is faster or not."""
    low = lower(k, chip=chip, search=AS_WRITTEN)
    node = max((g for g in low.extraction.best.graph.grids if g.op == "Strips"), key=lambda g: len(g.payload[0]))
    return made_of(node, low.form).candidates[0]


@lru_cache
def large(**options) -> Lowered:
    return lower(kernel(GEMM, **LARGE), search=search_options(**options))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        pytest.param(GEMM, {}, marks=pytest.mark.long),
        (GEMM, {"M": 3000, "N": 384, "K": 130}),
        (TRANSPOSED, {"N": 390, "K": 384}),
        (BOTH_DOWN, {"K": 130}),
        (ADDED, {}),
        pytest.param(BYTES, {}, marks=pytest.mark.long),
        (BYTES, {"M": 3000, "N": 390, "K": 512}),
        (ADDED, {"N": 333, "K": 251}),
        (BYTES, {"M": 600, "N": 250, "K": 251}),
        (GEMM.replace("f16", "f32"), {"M": 500, "N": 251, "K": 1030}),
    ],
    ids=[
        "even", "tails", "transposed", "both operands", "vector work", "bytes", "byte tails", "odd rows", "odd bytes", "floats",
    ],
)
@pytest.mark.parametrize(
    ("order", "chip"), [(1, "910B2"), (None, "950"), pytest.param(None, "910B2", marks=pytest.mark.long)]
)
def test_numbers_are_those_of_the_source(text, sizes, order, chip):
    k = kernel(text, **sizes)
    arrays = arrays_for(k)
    ran = in_strips(k, chip).planned.run(arrays, order=order)
    for name, want in meaning(k, arrays).items():
        np.testing.assert_allclose(ran[name].astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=2e-2)


@pytest.mark.slow
def test_strips_that_lie_further_apart_than_a_field_holds_are_loaded_one_by_one():
    k = kernel(GEMM, M=70000, N=40, K=72, BM=128)
    found, arrays = in_strips(k), arrays_for(k)
    assert "for (int32_t strip = 0;" in str(found.planned.source)
    ran, want = found.planned.run(arrays, order=2)["C"], meaning(k, arrays)["C"]
    np.testing.assert_allclose(ran.astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-2)


@pytest.mark.slow
def test_of_a_batch_each_matrix_is_copied():
    k = kernel(BATCHED, Z=40, M=70, N=250, K=99)
    arrays = arrays_for(k)
    ran, want = in_strips(k).planned.run(arrays, order=2)["C"], meaning(k, arrays)["C"]
    np.testing.assert_allclose(ran.astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-2)


@pytest.mark.slow
def test_tiles_that_load_keys_and_values_from_strips_go_on_as_one():
    k = kernel((EXAMPLES / "flash_attention.tile").read_text("utf-8"), S=1000, D=80, H=2)
    low, arrays = lower(k, search=AS_WRITTEN), arrays_for(k)
    chosen = low.chosen.schedule
    assert chosen.in_strips and chosen.joined and chosen.parts.payload == ("K and V",)
    ran, want = low.run(arrays, order=3)["O"], meaning(k, arrays)["O"]
    np.testing.assert_allclose(ran.astype(np.float32), want.astype(np.float32), rtol=1e-2, atol=4e-2)


@lru_cache
def of_few_turns() -> Lowered:
    """Two turns of the cores, and rows that begin anywhere: a turn takes longer than to copy both operands."""
    return lower(kernel(GEMM, M=500, N=251, K=1030))


@pytest.mark.slow
def test_where_a_turn_takes_longer_than_the_copies_all_tiles_load_from_them():
    chosen = of_few_turns().chosen.schedule
    assert chosen.in_strips and chosen.second is None
    cube = of_few_turns().program.cube
    assert isinstance(cube[0], SyncAll)
    loads = [n for n in walk(cube) if isinstance(n, Instr) and n.op == "gm_to_l1"]
    assert {n.srcs[0].tensor for n in loads} == {"A_strips", "B_strips"}


@pytest.mark.slow
def test_why_not_takes_the_names_of_several_operands():
    assert "this is what was chosen" in str(why_not(of_few_turns(), "grid=strips,A and B"))


@pytest.mark.slow
def test_a_core_with_one_tile_waits_for_strips_where_rows_begin_off_a_burst():
    k = kernel(GEMM, M=50, N=250, K=1001)
    low, arrays = lower(k, search=AS_WRITTEN), arrays_for(k)
    chosen = low.chosen.schedule
    assert chosen.in_strips and not chosen.persistent
    ran, want = low.run(arrays, order=3)["C"], meaning(k, arrays)["C"]
    np.testing.assert_allclose(ran.astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-2)


@pytest.mark.slow
def test_its_numbers_are_those_of_the_source():
    arrays = arrays_for(of_few_turns().kernel)
    ran = of_few_turns().run(arrays, order=2)
    want = meaning(of_few_turns().kernel, arrays)["C"].astype(np.float32)
    np.testing.assert_allclose(ran["C"].astype(np.float32), want, rtol=4e-3, atol=4e-2)


@pytest.mark.slow
def test_its_schedule_begins_with_the_copies():
    text = str(explained(of_few_turns()))
    assert "beside it" not in text
    assert text.index("B_strips = B, in strips of 32 bytes") < text.index("all cores meet") < text.index("GmToL1Strips(A_strips)")


@pytest.mark.slow
def test_strips_long_loads_unit_flags_and_halves_go_together(monkeypatch):
    """On a chip of two cube cores, so that a core goes through as many large tiles as on a large one."""
    chip = replace(load_chip("910B2"), cube_cores=2, vector_cores=4)
    for module in ("search.compiler", "search.planned"):
        monkeypatch.setattr(f"tile_eg.{module}.compiled_for", lambda name: chip)
    k = kernel(ADDED, M=896, N=1024, K=1024, BM=128, BN=256)
    low = lower(k)
    second = low.candidates[0].schedule.second
    assert second and {"GmToL1Strips", "GmToL1Coarsened"} <= {n.op for n in second.nodes}
    assert [n.payload[2:] for n in second.nodes if n.op == "L0"] == [(128, 128, 128)]
    assert all(n.unit != ZERO for n in walk(low.program.cube) if isinstance(n, Instr) and n.op == "fixpipe")
    arrays = arrays_for(k)
    ran = low.run(arrays, order=3)
    np.testing.assert_allclose(ran["E"].astype(np.float32), meaning(k, arrays)["E"].astype(np.float32), rtol=4e-3, atol=4e-2)


@pytest.mark.slow
def test_a_large_product_takes_it():
    chosen = large().candidates[0].schedule
    assert chosen.parts and (chosen.parts.op, chosen.parts.payload) == ("Strips", ("B",))
    assert large().cost.microseconds < 0.97 * large(without=("operand-in-strips",)).cost.microseconds


@pytest.mark.long
def test_so_does_one_with_a_transposed_right_operand():
    k = kernel(TRANSPOSED, **LARGE)
    assert lower(k).cost.microseconds < 0.92 * lower(k, search=search_options(without=("operand-in-strips",))).cost.microseconds


@pytest.mark.long
def test_two_operands_of_short_rows_are_copied_together():
    low = lower(kernel(BOTH_DOWN, **LARGE))
    assert low.candidates[0].schedule.parts.payload == ("A and B",)
    text = str(explained(low))
    assert "A_strips = A, in strips" in text and "B_strips = B, in strips" in text
    assert " (+" in str(why_not(low, "grid=24,3,0"))


@pytest.mark.slow
def test_without_loads_from_strips_there_is_no_copy():
    assert large(without=("gm-l1-strips",)).candidates[0].schedule.parts is None


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"effort": "none"}, {"without": ("operand-in-strips",)}])
def test_it_can_be_switched_off(options):
    assert large(**options).candidates[0].schedule.parts is None


@pytest.mark.slow
def test_all_cores_meet_once_behind_the_first_turns():
    low = large(without=("rest-in-parts",))
    program, schedule = low.program, low.candidates[0].schedule
    first, second = schedule.tiles, schedule.second.tiles
    assert first[0] == 0 and second[0] == first[1] and sum(second) == 512 and second[1] % 24 == 0
    assert [sum(isinstance(n, SyncAll) for n in program.core(core)) for core in ("AIC", "AIV")] == [1, 1]


@pytest.mark.slow
def test_before_the_meeting_nothing_is_loaded_from_strips_and_behind_it_nothing_from_the_operand():
    cube = large().program.cube
    at = next(i for i, n in enumerate(cube) if isinstance(n, SyncAll))
    loads = [[n for n in walk(part) if isinstance(n, Instr) and n.op == "gm_to_l1"] for part in (cube[:at], cube[at:])]
    assert [{n.srcs[0].tensor for n in part} for part in loads] == [{"A", "B"}, {"A", "B_strips"}]


@pytest.mark.slow
def test_explain_shows_the_copy_and_the_rule():
    text = str(explained(large()))
    assert "B_strips = B, in strips of 32 bytes" in text and "operand-in-strips" in text and "B copied in strips first" in text


@pytest.mark.slow
def test_why_not_tells_what_it_costs_to_do_without():
    assert " (+" in str(why_not(large(), "grid=24,0,0"))


@pytest.mark.slow
def test_a_product_of_one_tile_a_core_is_not_offered_it():
    assert not any(g.op == "Strips" for g in lower(kernel(GEMM, M=32)).extraction.best.graph.grids)


@pytest.mark.long
def test_long_sums_make_up_for_the_copy_in_a_few_turns():
    low = lower(kernel(GEMM, M=2048, N=2048, K=4096, BM=128, BN=128))
    assert low.candidates[0].schedule.second is not None


@pytest.mark.slow
def test_an_operand_is_offered_once():
    assert len([t for t in large().tried if t.offer.move.name == "packed-operand"]) == 1


@pytest.mark.long
def test_both_operands_in_strips_are_faster_than_either_alone() -> None:
    options = search_options(without=("rest-in-parts", "shuffle-k"))
    low = lower(kernel(ADDED, M=4096, N=4096, K=4096, BM=128, BN=128), search=options)
    tried = {t.offer.what: t.microseconds for t in low.tried if t.offer.move.name == "packed-operand"}
    assert low.chosen.microseconds == tried["A and B"] < min(tried["A"] or math.inf, tried["B"] or math.inf)


@pytest.mark.slow
def test_of_orders_that_take_as_long_strips_go_with_one_that_reads_little_of_hbm() -> None:
    options = search_options(without=("shuffle-k", "blocks-together"))
    low = lower(kernel(GEMM, M=4096, N=28672, K=4096, BM=128, BN=256), chip="950", search=options)
    assert low.chosen.schedule.parts is not None
