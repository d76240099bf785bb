"""Trips whose products take windows of one tile as one trip: the same numbers, from fewer loads."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tests.transforms.test_split_k import whole_numbers
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.program import Instr, Tasks, walk
from tile_eg.ir.reference_values import Dependences, Run, run_values
from tile_eg.ir.values import Values, reachable
from tile_eg.ops.types import Level
from tile_eg.search.compiler import lower, meaning, search_options
from tile_eg.transforms.shared_windows import in_shared_windows

CONVOLUTION = """
kernel convolution[H=4, W=20, C=32, O=32, KH=3, KW=3, BW=16](X: f16[H, W, C], F: f16[KH, KW, C, O]) -> Y: f32[H, W, O] {
  grid (bw, y) = (ceildiv(W, BW), H)
  shared   x: f16[BW, C], f: f16[C, O]
  fragment c: f32[BW, O] = 0
  for k in pipelined(KH*KW) {
    x = pad(X[y + k // KW - KH // 2, bw*BW + k % KW - KW // 2, 0], 0)
    f = F[k // KW, k % KW, 0, 0]
    c += x @ f
  }
  Y[y, bw*BW, 0] = c
}
"""
INSIDE = CONVOLUTION.replace("X: f16[H, W, C]", "X: f16[H + 2, W + 12 + 2, C]").replace("pad(X", "X").replace(", 0], 0)", ", 0]")
INSIDE = INSIDE.replace(" - KH // 2", "").replace(" - KW // 2", "")
ROOM = 1 << 19
TWO_BORDERS = """
kernel borders[W=32, C=32, O=32, K=3, BW=16](X: f16[W, C], F: f16[K, C, O]) -> (Y: f32[W, O], Z: f32[W, O]) {
  grid bw = ceildiv(W, BW)
  shared   x: f16[BW, C], ones: f16[BW, C], f: f16[C, O]
  fragment c: f32[BW, O] = 0, d: f32[BW, O] = 0
  for k in pipelined(K) {
    x = pad(X[bw*BW + k - 1, 0], 0)
    ones = pad(X[bw*BW + k - 1, 0], 1)
    f = F[k, 0, 0]
    d += ones @ f
    c += x @ f
  }
  Y[bw*BW, 0] = c
  Z[bw*BW, 0] = d
}
"""
SIZES = [{}, {"W": 32}, {"H": 1, "W": 3}, {"KH": 5, "KW": 5, "H": 2}, {"KH": 1, "KW": 4}, {"C": 16, "O": 48, "W": 33}]


def grouped(text: str, room: int = ROOM, **sizes: int) -> Values:
    found = in_shared_windows(to_values(kernel(text, **sizes)), room)
    assert found is not None
    return found


@pytest.mark.parametrize(("text", "sizes"), [*((CONVOLUTION, s) for s in SIZES), (INSIDE, {"W": 32})])
def test_the_meaning_stays(text: str, sizes: dict[str, int]) -> None:
    k = kernel(text, **sizes)
    arrays = whole_numbers(k)
    assert np.array_equal(run_values(grouped(text, **sizes), arrays)["Y"], meaning(k, arrays)["Y"])


def parts_elsewhere(values: Values, arrays: dict[str, np.ndarray]) -> list[tuple[int, int, int]]:
    """The block, the trip and the row of each window that is not what stands there in the tile that it is said to lie in."""
    loops, found = Dependences(values), []
    for block, trip in product(range(values.blocks), range(max(values.trips.values(), default=1))):
        run = Run(values, loops, arrays, block)
        run.indices |= dict.fromkeys(values.variables.values(), trip)
        for part, tile, row in values.within:
            (rows, cols), there = run.valid(part), run.inner(tile)
            if not np.array_equal(run.inner(part), there[row : row + rows, :cols]):
                found.append((block, trip, row))
    return found


@pytest.mark.parametrize(("text", "sizes"), [*((CONVOLUTION, s) for s in SIZES), (INSIDE, {"W": 32}), (TWO_BORDERS, {})])
def test_a_window_is_what_stands_in_its_tile(text: str, sizes: dict[str, int]) -> None:
    values = grouped(text, **sizes)
    assert values.within and not parts_elsewhere(values, whole_numbers(kernel(text, **sizes)))


def test_a_row_of_the_image_is_one_tile_for_its_shifts() -> None:
    found = grouped(CONVOLUTION)
    assert sorted(row for _, tile, row in found.within if tile.op == "put") == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_no_loop_is_left_where_all_trips_have_room() -> None:
    assert not any(t.op == "loop" for t in reachable(grouped(CONVOLUTION)))


def test_with_less_room_fewer_trips_are_one() -> None:
    loops = [t for t in reachable(grouped(CONVOLUTION, room=9000)) if t.op == "loop"]
    assert [t.args[1] for t in loops] == [3]


@pytest.mark.parametrize(
    "text",
    [
        CONVOLUTION.replace("- KW // 2, 0], 0)", "- KW // 2, 0], 1)"),
        CONVOLUTION.replace("bw*BW + k % KW - KW // 2", "bw*BW + (k % KW) * 16 - 16"),
        CONVOLUTION.replace("f16", "f32"),
    ],
    ids=["a border of ones", "windows side by side", "elements that are not turned anywhere"],
)
def test_other_loops_stay_as_they_are(text: str) -> None:
    assert in_shared_windows(to_values(kernel(text)), ROOM) is None


def test_without_room_for_two_trips_the_loop_stays() -> None:
    assert in_shared_windows(to_values(kernel(CONVOLUTION)), 1000) is None


@pytest.mark.slow
def test_the_tiles_that_windows_lie_in_have_the_name_of_their_buffer() -> None:
    found = lower(kernel(CONVOLUTION), "910B2").chosen.schedule
    assert {s.name for s in found.storages.values() if s.level is Level.L1} == {"x", "f"}


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_the_simulator_computes_the_same(chip: str) -> None:
    k = kernel(CONVOLUTION, H=2)
    lowered, arrays = lower(k, chip), whole_numbers(k)
    assert "shared-windows" in lowered.form.moves or chip == "950"
    assert np.array_equal(lowered.run(arrays)["Y"], meaning(k, arrays)["Y"])


@pytest.mark.slow
def test_it_gains_and_can_be_left_out() -> None:
    k = kernel(CONVOLUTION, H=56, W=56, C=64, O=64, BW=56)
    own = lower(k, "910B2", search=search_options(without=["shared-windows"]))
    assert "shared-windows" not in own.form.moves
    assert lower(k, "910B2").chosen.microseconds < 0.9 * own.chosen.microseconds


@pytest.mark.slow
def test_the_filter_is_loaded_once_for_all_tiles_of_a_core() -> None:
    program = lower(kernel(CONVOLUTION, H=56, W=56, C=64, O=64, BW=56), "910B2").chosen.planned.program
    (tasks,) = (n for n in walk(program.cube) if isinstance(n, Tasks))
    inside = {n.srcs[0].tensor for n in walk(tasks.body) if isinstance(n, Instr) and n.op == "gm_to_l1"}
    assert inside == {"X"}
