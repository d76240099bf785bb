"""A program with one fault: the first value that it makes wrong is named, with its line, trips, tile and both numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.generator import random_kernel
from tile_eg.frontend.text import load_text
from tile_eg.inputs import drawn_sets
from tile_eg.ir.index import BLOCK, less, var
from tile_eg.ir.program import Gm, Instr, Loop, When
from tile_eg.locate import Subject, located
from tile_eg.locate.search import compared, stores_in
from tile_eg.search import search_options
from tile_eg.search.compiler import Planned, lower

EXAMPLES = Path(__file__).parents[2] / "examples"
SUMS = """kernel sums[M=64, N=256, BM=16, BN=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared   x: f32[BM, BN], e: f32[BM, BN]
  fragment l: f32[BM] = 0
  for j in pipelined(ceildiv(N, BN)) {
    x = X[bx*BM, j*BN]
    e = exp(x * 0.5)
    l = l + rowsum(e)
  }
  for k in pipelined(ceildiv(N, BN)) {
    x = X[bx*BM, k*BN]
    e = exp(x)
    Y[bx*BM, k*BN] = e / l[:, None]
  }
}
"""
SUMS_OF_ROWS = """kernel sums_of_rows[M=832, N=32](A: f16[M, 16], B: f16[16, N]) -> Y: f32[M, N] {
  grid m = 52
  shared a: f16[16, 16], b: f16[16, N]
  fragment c: f32[16, N]
  a = A[m*16, 0]
  b = B[0, 0]
  c = a @ b
  Y[m*16, 0] = cumsum(c, 1)
}
"""
LONG_SUM = """kernel long_sum[M=64, N=64, K=2048, BM=64, BN=64, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  C[bx*BM, by*BN] = relu(c)
}
"""


@cache
def subject(text, **options):
    kernel = load_text(text, "k.tile").instantiate()
    low = lower(kernel, search=search_options(**options))
    return Subject(kernel, low, low.candidates[0].schedule), drawn_sets(kernel, ("uniform",), 0)[0]


def example(name, **options):
    return subject((EXAMPLES / f"{name}.tile").read_text(), **options)


def changed(nodes, op, change):
    """The nodes with the first instruction of this name changed."""
    out, found = [], False
    for n in nodes:
        if isinstance(n, Loop | When) and not found:
            body, found = changed(n.body, op, change)
            n = replace(n, body=body)
        elif isinstance(n, Instr) and n.op == op and not found:
            n, found = change(n), True
        out.append(n)
    return tuple(out), found


def first_wrong(made, op, change):
    """What is named where the first instruction `op` of the program is another one."""
    right, drawn = made
    program = right.planned.program
    cube, in_cube = changed(program.cube, op, change)
    vector, in_vector = changed(program.vector, op, change) if not in_cube else (program.vector, True)
    assert in_cube or in_vector
    wrong = Planned(replace(program, cube=cube, vector=vector), right.planned.chip)
    run = wrong.run(drawn.arrays, strict=False)
    return located(replace(right, planned=wrong), drawn.arrays, run, drawn.meant, "from the meaning", {})


@pytest.mark.slow
def test_a_wrong_constant_is_found_where_it_is_multiplied():
    found = first_wrong(subject(SUMS), "vmuls", lambda n: replace(n, scalar=0.25))
    assert found.first.span.line == 7 and found.first.instruction == "vmuls" and found.first.trips == {"j": 0}
    assert found.first.got == pytest.approx(found.first.want / 2) and found.first.wrong > 1


def test_the_text_shows_the_line_with_a_caret():
    text = str(first_wrong(subject(SUMS), "vmuls", lambda n: replace(n, scalar=0.25)))
    assert "k.tile:7:" in text and "e = exp(x * 0.5)\n" in text and "^^^" in text


@pytest.mark.slow
def test_a_fault_of_one_trip_is_found_in_that_trip_and_with_its_element_of_the_tensor():
    def late(n):
        return replace(n, dst=n.dst, srcs=(replace(n.srcs[0], offset=n.srcs[0].offset + less(1, var("j"))),))

    first = first_wrong(subject(SUMS), "gm_to_ub", late).first
    assert (first.name, first.trips, first.span.line) == ("x", {"j": 2}, 6)
    assert first.place == ("X", (first.element[0], 2 * 64 + first.element[1]))


@pytest.mark.slow
def test_a_fault_of_one_tile_of_the_grid_is_found_in_that_tile():
    def elsewhere(n):
        source = n.srcs[0]
        return replace(n, srcs=(replace(source, offset=source.offset - less(2, var(BLOCK))),))

    first = first_wrong(subject(SUMS), "gm_to_ub", elsewhere).first
    assert (first.tile, first.grid, first.place[0]) == (3, {"bx": 3}, "X") and first.place[1][0] >= 48


@pytest.mark.slow
def test_a_value_that_is_right_and_stored_elsewhere_is_found_at_its_store():
    def further(n):
        assert isinstance(n.dst, Gm)
        return replace(n, dst=replace(n.dst, offset=n.dst.offset + 1), cols=n.cols - 1)

    found = first_wrong(subject(SUMS), "ub_to_gm", further)
    assert found.first.stored and (found.first.name, found.first.span.line) == ("Y", 13)
    assert found.first.element[0] == 0 and found.first.grid == {"bx": 0}


@pytest.mark.slow
def test_a_product_is_found_in_the_trip_that_leaves_something_out():
    made = example("gemm", without=("shuffle-k",))
    found = first_wrong(made, "mmad", lambda n: replace(n, depth=n.depth - less(2, var("k_in") + var("k_panel") * 2)))
    assert found.first.name == "c" and found.first.trips == {"k": 3} and found.first.memory == "L0C"


@pytest.mark.slow
def test_of_a_sum_that_each_core_begins_elsewhere_its_operands_are_found_in_their_trips_and_the_sum_at_its_end():
    made = example("gemm")
    assert made[0].schedule.shuffled

    def late(n):
        return replace(n, srcs=(replace(n.srcs[0], offset=n.srcs[0].offset + less(0, var("k_panel"))),))

    loaded = first_wrong(made, "gm_to_l1", late).first
    assert (loaded.name, loaded.memory) == ("a", "L1") and loaded.place[0] == "A"
    added = first_wrong(made, "mmad", lambda n: replace(n, depth=n.depth - less(0, var("k_panel")))).first
    assert added.stored and added.name == "C"


@pytest.mark.slow
def test_what_a_product_of_deeper_trips_gives_is_that_of_their_last():
    made = example("gemm_int8", without=("shuffle-k",))
    assert any(isinstance(n, Loop) and n.var == "k_by2_panel" for n in made[0].planned.program.cube)
    first = first_wrong(made, "mmad", lambda n: replace(n, depth=n.depth - less(0, var("k_by2_panel")))).first
    assert first.trips == {"k": 5} and first.got != first.want


@pytest.mark.slow
def test_a_fault_in_the_first_phase_of_a_long_sum_is_found_there():
    made = subject(LONG_SUM, without=("split-depth-added",))
    assert made[0].schedule.second is not None
    first = first_wrong(made, "mmad", lambda n: replace(n, depth=n.depth - 16)).first
    assert first.instruction == "mmad" and first.name == "c"


@pytest.mark.slow
def test_where_each_vector_core_has_a_tile_of_its_own_the_store_is_named():
    made = subject(SUMS_OF_ROWS)
    assert made[0].schedule.graph.values.tile_each
    found = first_wrong(made, "mmad", lambda n: replace(n, depth=n.depth - 8))
    assert found.first.stored and found.first.name == "Y" and "each vector core has a tile of its own" in str(found)


@pytest.mark.slow
def test_a_value_nobody_stores_is_told_without_a_block():
    found = first_wrong(subject(SUMS), "ub_to_gm", lambda n: replace(n, rows=n.rows - 1))
    assert found.first.stored and "no block has written it" in str(found)


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["softmax", "flash_attention_causal", "gemm_transposed", "gemm_exp", "layer_norm", "matmul_add", "online_softmax"]
)
@pytest.mark.parametrize("extractor", ["exact", "random"])
def test_no_value_of_a_right_program_is_called_wrong(name, extractor):
    right, drawn = example(name, extractor=extractor) if extractor != "exact" else example(name)
    stores = stores_in(right.planned, drawn.arrays, {})
    tile = max(s.tile for s in stores.each)
    ((_, comparer),), _ = compared(right, drawn.arrays, tile, stores, {})
    assert comparer.right and not comparer.wrong


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4, 7])
def test_no_value_of_a_random_kernel_is_called_wrong(seed):
    right, drawn = subject(random_kernel(seed))
    stores = stores_in(right.planned, drawn.arrays, {})
    found, _ = compared(right, drawn.arrays, stores.each[0].tile, stores, {})
    assert any(c.right for _, c in found) and not any(c.wrong for _, c in found)


@pytest.mark.slow
def test_nothing_is_named_where_nothing_differs():
    right, drawn = subject(SUMS)
    run = right.planned.run(drawn.arrays, strict=False)
    found = located(right, drawn.arrays, run, drawn.meant, "from the meaning", {})
    assert found.good and str(found) == "no value differs from the meaning"


@pytest.mark.slow
def test_every_element_of_an_output_has_the_store_that_wrote_it():
    right, drawn = subject(SUMS)
    stores = stores_in(right.planned, drawn.arrays, {})
    assert all((last >= 0).all() for last in stores.last.values())
    rows = np.array([stores.each[n].tile for n in stores.last["Y"].reshape(64, 256)[:, 0]])
    assert (rows == np.arange(64) // 16).all()
