"""A block that goes through several tiles: every tile is done once, in any order, and its flags serve any number of them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emit.test_lower import FLASH, GEMM
from tests.extract.checked import arrays_for
from tests.extract.kernels import CHIP, graph_of, kernel
from tile_eg.egraph import Node
from tile_eg.emit import lower as lowering
from tile_eg.emit.ascend_c.kernel import kernel_text
from tile_eg.emit.lower.tasks import reordered
from tile_eg.emit.sync.check import races
from tile_eg.emit.sync.planning import synchronise
from tile_eg.emit.sync.tasks import lengths, with_tiles
from tile_eg.errors import TileError
from tile_eg.extract import Schedule, extract
from tile_eg.extract.grid import with_grid
from tile_eg.ir.index import BLOCK, evaluate, var, variables
from tile_eg.ir.program import AIC, AIV, Gm, Instr, Let, Program, Tasks, walk
from tile_eg.ir.program.parser import parse_program
from tile_eg.ir.program.tasks import free_names, in_order, inlined, tasks, tile_at
from tile_eg.search.compiler import meaning, plan_schedule

NAMES = free_names(("task", "turn", "band", "width", "step", "tile"), ())
ORDERS = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 10), st.integers(0, 1), st.integers(1, 12))
GEMM_EXP = """
kernel gemm_exp[M=128, N=192, K=96, BM=32, BN=64](A: f16[M, K], B: f16[K, N]) -> D: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared   a: f16[BM, K], b: f16[K, BN]
  a = A[bx*BM, 0]
  b = B[0, by*BN]
  D[bx*BM, by*BN] = exp(a @ b)
}
"""
SOFTMAX = """
kernel softmax[M=100, N=72, BM=16](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared   x: f32[BM, N]
  x = X[bx*BM, 0]
  x = exp(x - rowmax(x)[:, None])
  x = x / rowsum(x)[:, None]
  Y[bx*BM, 0] = x
}
"""
NAMED_ALIKE = """
kernel names[M=635, N=633, K=120, BM=64, BN=64, BK=32](tile: f16[M, K], band: f16[K, N]) -> tasks: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared   turn: f16[BM, BK], step: f16[BK, BN]
  fragment width: f32[BM, BN] = 0
  for task in pipelined(ceildiv(K, BK)) {
    turn = tile[bx*BM, task*BK]
    step = band[task*BK, by*BN]
    width += turn @ step
  }
  tasks[bx*BM, by*BN] = width
}
"""
KERNELS = {
    "gemm": GEMM.replace("M=100, N=300", "M=260, N=496").replace("BM=128, BN=256", "BM=64, BN=128"), "flash": FLASH,
    "gemm_exp": GEMM_EXP, "softmax": SOFTMAX,
}  # fmt: skip


@lru_cache
def best(name: str) -> Schedule:
    return extract(graph_of(KERNELS[name]), CHIP, k=1).best


def grid(blocks: int, window: int = 0, along: int = 0) -> Node:
    return Node(0, "Persistent", -1, (), (blocks, window, along), 0, ())


@lru_cache
def program(name: str, blocks: int, window: int = 0) -> Program:
    return synchronise(lowering.plan(with_grid(best(name), grid(blocks, window), CHIP), CHIP))


def loop_of(p: Program, core: str = "") -> Tasks:
    return next(n for n in (p.core(core) if core else (*p.cube, *p.vector)) if isinstance(n, Tasks))


def done(loop: Tasks, blocks: int) -> list[int]:
    """The tiles of all blocks, in their order."""
    out = []
    for block in range(blocks):
        for trip in range(evaluate(loop.until, {BLOCK: block})):
            env = {BLOCK: block, loop.var: trip}
            for let in loop.lets:
                env[let.name] = evaluate(let.value, env)
                assert 0 <= env[let.name] <= let.most
            out.append(env[loop.lets[-1].name])
    return out


# ---- orders -----------------------------------------------------------------------------------------------------------------


@given(ORDERS)
def test_every_tile_is_done_by_one_task(order):
    x, y, window, along, blocks = order
    blocks = min(blocks, x * y)
    lets = in_order(var("task") * blocks + var(BLOCK), (x, y), min(window, (x, y)[along]), along, NAMES)
    assert sorted(done(tasks((), blocks, lets, NAMES), blocks)) == list(range(x * y))


@given(ORDERS)
def test_the_number_of_a_tile_is_what_its_expression_says(order):
    x, y, window, along, _ = order
    window = min(window, (x, y)[along])
    loop = tasks((), 1, in_order(var("task"), (x, y), window, along, NAMES), NAMES)
    assert done(loop, 1) == [tile_at(turn, (x, y), window, along) for turn in range(x * y)]


def test_a_band_is_gone_through_across_its_width_first():
    assert [divmod(tile_at(turn, (4, 3), 2, 0), 4)[::-1] for turn in range(6)] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]


def test_every_other_band_is_gone_through_backwards():
    assert [tile_at(turn, (2, 3), 1, 0) for turn in range(6)] == [0, 2, 4, 5, 3, 1]


@given(st.integers(1, 50), st.integers(1, 50))
def test_a_block_has_at_most_one_tile_less_than_another(tiles, blocks):
    blocks = min(blocks, tiles)
    loop = tasks((), blocks, [Let("tile", var("task") * blocks + var(BLOCK), tiles - 1)], NAMES)
    counts = {evaluate(loop.until, {BLOCK: block}) for block in range(blocks)}
    assert counts <= {loop.trips, loop.trips - 1} and loop.trips in counts and 0 not in counts


def test_names_give_way_to_those_of_the_kernel():
    assert free_names(("task", "tile"), ("task", "task2")) == {"task": "task3", "tile": "tile"}


# ---- programs ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", KERNELS)
def test_a_persistent_program_reads_back_from_its_text(name):
    p = program(name, 3)
    assert parse_program(str(p)) == p


def test_a_name_that_nothing_gives_is_refused():
    text = str(program("softmax", 3)).replace("tile to 6 = ", "tile to 6 = nowhere + ")
    with pytest.raises(TileError, match="nothing here is called 'nowhere'"):
        parse_program(text)


def test_without_its_names_a_program_knows_blocks_and_trips_only():
    p = inlined(program("gemm", 3, 2))
    loops = {n.var for n in walk(p.cube) if hasattr(n, "var")}
    starts = [o.offset for n in walk(p.cube) if isinstance(n, Instr) for o in (n.dst, *n.srcs) if isinstance(o, Gm)]
    assert set().union(*map(variables, starts)) <= {BLOCK, *loops}


def test_another_order_changes_nothing_but_the_names_of_tiles():
    across = with_grid(best("gemm"), grid(3, 2), CHIP)
    other = reordered(program("gemm", 3), across)
    assert loop_of(other).lets == loop_of(program("gemm", 3, 2)).lets
    assert replace(other, cube=()) == replace(program("gemm", 3), cube=()) and other.cube != program("gemm", 3).cube


def test_the_text_counts_a_blocks_tiles():
    text = kernel_text(program("gemm", 3, 2))
    assert "const int32_t tasks = (22 - block) / 3;" in text
    assert "for (int32_t task = 0; task < tasks; ++task) {" in text
    assert "const int32_t turn = block + task * 3;" in text


def test_equal_shares_need_no_count():
    assert "for (int32_t task = 0; task < 5; ++task) {" in kernel_text(program("gemm", 4))


@pytest.mark.slow
def test_a_kernel_may_use_the_same_names():
    k = kernel(NAMED_ALIKE)
    planned = plan_schedule(with_grid(extract(graph_of(NAMED_ALIKE), CHIP, k=1).best, grid(24, 3), CHIP), CHIP)
    arrays = arrays_for(k)
    got, want = planned.run(arrays)["tasks"], meaning(k, arrays)["tasks"]
    np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=8e-3)


# ---- flags ------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("blocks", [1, 2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_flags_order_everything_whatever_number_of_tiles_a_block_has(name, blocks):
    p = program(name, blocks)
    trips = loop_of(p).trips
    for tiles in {trips, max(1, trips - 1)}:
        assert races(with_tiles(p, tiles)) == []


@pytest.mark.slow
@pytest.mark.parametrize("tiles", [1, 2, 3, 4, 5, 6, 9])
@pytest.mark.parametrize("name", KERNELS)
def test_flags_found_at_a_few_tiles_serve_many(name, tiles):
    assert races(with_tiles(program(name, 1), tiles)) == []


def test_no_barrier_or_join_stands_between_the_tiles_of_a_product():
    """The next tile is loaded while this one is on its way out: the store's pipe waits for nothing of its own."""
    events = [line.split() for line in str(program("gemm", 3)).splitlines() if line.strip().startswith(("set", "barrier"))]
    assert ["barrier", "FIX"] not in events
    assert not [e for e in events if e[0] == "set" and e[1] == "FIX" and e[3] == "MTE2"]


def test_synchronisation_looks_at_few_tiles_of_many():
    many = with_tiles(program("gemm", 3), 1000)
    assert next(lengths(many))[0] <= 5


@pytest.mark.slow
def test_both_cores_go_through_the_same_tiles():
    cube, vector = (loop_of(program("flash", 3), core) for core in (AIC, AIV))
    assert (cube.trips, cube.until, cube.lets) == (vector.trips, vector.until, vector.lets)
