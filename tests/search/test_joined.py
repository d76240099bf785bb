"""Tiles as one: the skewed loop of a persistent kernel goes on from tile to tile."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.emit.sync.check import races
from tile_eg.emit.sync.tasks import with_tiles
from tile_eg.errors import plannable
from tile_eg.extract.joined import TILES, _alike, fitting_depth, joined, loop_of, rounds_of
from tile_eg.extract.schedule import FIRST, LAST, LoopStep, Schedule, Step
from tile_eg.ir.index import evaluate, variables
from tile_eg.ir.program import Loop, Tasks
from tile_eg.ir.program.parser import parse_program
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning, plan_schedule
from tile_eg.search.planned import Planned
from tile_eg.simulator.sample import blocks_with
from tile_eg.timeline.engine import run

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("split_decode", "mla_decode", "grouped_query", "sliding_window", "backward_dq")
SPLIT, MLA, CAUSAL, WINDOW, BACKWARD = ((EXAMPLES / "attention" / f"{name}.tile").read_text("utf-8") for name in NAMES)
ATTENTION = (EXAMPLES / "flash_attention.tile").read_text("utf-8")
NINE = {"H": 2, "S": 1024, "W": 250, "D": 64, "BM": 32, "BN": 32}
COUNTED = {"H": 16, "S": 250, "G": 4, "D": 64, "BM": 64, "BN": 32}
HEADS = {"H": 16, "S": 256, "BM": 64, "BN": 64}


@cache
def compiled(text: str = ATTENTION, *without: str, chip: str = "910B2", **sizes: int) -> Lowered:
    return lower(kernel(text, **(sizes or HEADS)), chip, search=search_options(without=(*without, "blocks-together")))


def plain(low: Lowered) -> Schedule:
    """The best of the schedules whose tiles can be one."""
    return next(c.schedule for c in low.candidates if loop_of(c.schedule))


def as_one(low: Lowered) -> Planned:
    """The best of the schedules whose tiles can be one, so, for which there are flags."""
    made = (m for c in low.candidates if (m := joined(c.schedule, low.chip)))
    planned = (plannable(lambda m=m: plan_schedule(m, low.chip)) for m in made)
    return next(p for p in planned if isinstance(p, Planned))


def body(schedule: Schedule) -> list[Step]:
    (loop,) = (x for x in schedule.top if isinstance(x, LoopStep))
    return [x for x in loop.body if isinstance(x, Step)]


@pytest.mark.slow
def test_attention_of_several_tiles_a_core_is_faster_with_its_tiles_as_one() -> None:
    assert compiled().candidates[0].schedule.joined
    assert compiled().cost.microseconds < 0.95 * compiled(ATTENTION, "tiles-as-one").cost.microseconds


@pytest.mark.slow
def test_the_schedule_says_so_and_in_which_trips_what_is_not_done_in_all() -> None:
    text = str(compiled().schedule)
    assert "its loop goes on from tile to tile" in text
    assert "(first trip)" in text and "(last trip" in text


def test_why_not_the_alternative_tells_that_its_tiles_come_one_after_the_other() -> None:
    assert "tiles: one after the other instead of as one loop" in str(compiled().explanation)


def test_a_tile_is_begun_where_its_first_result_is_needed_and_ended_where_the_last_one_is_there() -> None:
    steps = body(compiled().candidates[0].schedule)
    lags = {s.lag for s in steps if not s.at}
    assert {s.lag for s in steps if s.at == FIRST} <= lags
    assert max(s.lag for s in steps if s.at == LAST) == max(lags)


def test_a_round_of_trips_follows_the_last_tile() -> None:
    program = compiled().program
    (tasks,) = (n for n in program.cube if isinstance(n, Tasks))
    tiles = next(let for let in program.lets if let.name == tasks.behind)
    assert tasks.trips == tiles.most + 1


@pytest.mark.slow
def test_without_the_move_it_is_not_made() -> None:
    assert not any(c.schedule.joined for c in compiled(ATTENTION, "tiles-as-one").candidates)


@pytest.mark.slow
def test_a_product_alone_has_no_loop_that_could_go_on() -> None:
    gemm = (EXAMPLES / "gemm.tile").read_text("utf-8")
    assert not any(t.offer.move.name == "tiles-as-one" for t in compiled(gemm, M=256).tried)


def test_a_loop_of_fewer_trips_than_its_skew_is_left_as_it_is() -> None:
    schedule = plain(compiled())
    loop = loop_of(schedule)
    assert loop and joined(schedule, compiled().chip)
    short = replace(schedule, top=[replace(x, trips=loop.skew - 1) if x is loop else x for x in schedule.top])
    assert joined(short, compiled().chip) is None


def test_a_place_that_is_filled_while_the_tile_before_needs_it_is_found() -> None:
    schedule = plain(compiled())
    loop, made = loop_of(schedule), joined(schedule, compiled().chip)
    assert loop and made and _alike(schedule, loop, made)
    late = next(s for s in body(made) if s.at == FIRST and s.lag)
    whole = next(x for x in made.top if isinstance(x, LoopStep))
    early = replace(whole, body=[replace(x, lag=0) if x is late else x for x in whole.body])
    assert not _alike(schedule, loop, replace(made, top=[early if x is whole else x for x in made.top]))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("tiles", [25, 47, 48, 49, 24 * (TILES + 1)])
def test_blocks_may_have_any_number_of_tiles(tiles: int) -> None:
    low = compiled(ATTENTION, "tiles-as-one", H=tiles, S=128, BM=128, BN=32, D=32)
    assert not races(as_one(low).program)


@pytest.mark.slow
def test_tiles_of_other_numbers_of_trips_go_through_whole_rounds_of_their_rings() -> None:
    low = compiled(CAUSAL, "tiles-as-one", **COUNTED)
    program = as_one(low).program
    (tasks,) = (n for n in program.cube if isinstance(n, Tasks))
    ((trips, _),) = tasks.before
    (loop,) = (n for n in tasks.body if isinstance(n, Loop))
    assert loop.until is not None and trips not in variables(loop.until)
    assert all(loop.trips % b.slots == 0 for b in program.buffers if b.slots > 1)


@pytest.mark.slow
def test_a_tile_of_one_trip_goes_through_as_many_as_steps_are_late_and_no_more_than_whole_rounds_of_that() -> None:
    low = compiled(CAUSAL, "tiles-as-one", **COUNTED)
    made = next(m for c in low.candidates if (m := joined(c.schedule, low.chip)))
    (loop,) = (x for x in made.top if isinstance(x, LoopStep))
    (tasks,) = (n for n in plan_schedule(made, low.chip).program.cube if isinstance(n, Tasks))
    ((trips, _),) = tasks.before
    (through,) = (let.value for let in tasks.lets if variables(let.value) == {trips})
    rounds = rounds_of(made, loop)
    assert evaluate(through, {trips: 1}) == -(-loop.skew // rounds) * rounds


@pytest.mark.slow
def test_a_short_tile_behind_a_long_one_waits_for_its_store() -> None:
    """The long one's results are stored beside the short one's products, whose handovers then tell nothing of the store."""
    causal = (EXAMPLES / "flash_attention_causal.tile").read_text("utf-8")
    low = compiled(causal, "tiles-as-one", chip="950", H=20, S=90, D=16, BM=16, BN=16)
    assert not races(with_tiles(as_one(low).program, 4), {"trips": (6, 1)})


@pytest.mark.parametrize(
    ("tiles", "least", "depth"), [([9] * 28 + [1, 2], 6, 10), ([12] * 5, 6, 6), ([8] * 5, 2, 2), ([9, 5], 13, 13), ([], 3, 3)]
)
def test_rings_may_be_deeper_so_that_tiles_go_through_fewer_trips(tiles: list[int], least: int, depth: int) -> None:
    assert fitting_depth(tiles, least) == depth


@pytest.mark.long
def test_windows_of_nine_trips_go_through_ten_and_have_the_same_numbers() -> None:
    low, k = compiled(WINDOW, "tiles-as-one", "past-l2", **NINE), kernel(WINDOW, **NINE)
    made = next(m for c in low.candidates if (m := joined(c.schedule, low.chip, fitting=True)))
    loop = next(x for x in made.top if isinstance(x, LoopStep))
    assert rounds_of(made, loop) == 10
    planned, arrays = plan_schedule(made, low.chip), arrays_for(k)
    assert not races(planned.program)
    ran = planned.run(arrays, strict=False, order=1).as_meant(k, arrays)
    assert not ran.findings
    np.testing.assert_allclose(ran["O"].astype(float), meaning(k, arrays)["O"].astype(float), rtol=4e-3, atol=4e-3)


@pytest.mark.slow
def test_where_each_core_has_tiles_of_one_length_a_core_of_long_ones_is_timed() -> None:
    low = compiled(WINDOW, "tiles-as-one", H=3, S=768, W=100, D=64, BM=32, BN=32)
    products = [run(p.program, low.chip).busy["AIC", "M"] for p in (plan_schedule(plain(low), low.chip), as_one(low))]
    assert products[0] == products[1]


@pytest.mark.slow
def test_what_ends_short_tiles_late_has_two_places() -> None:
    """A tile of one trip may be over before the results of the tile before it are stored."""
    low = compiled(CAUSAL, "tiles-as-one", **COUNTED)
    made = next(m for c in low.candidates if (m := joined(c.schedule, low.chip)))
    lags = defaultdict[object, set[int]](set)
    for step in body(made):
        for sid in (step.dst, *step.srcs):
            lags[sid] |= {step.lag} if step.at == LAST else set()
    late = [sid for sid, found in lags.items() if len(found) > 1 and isinstance(sid, int)]
    assert late and all(made.storages[sid].slots == 2 for sid in late)


@pytest.mark.slow
def test_the_text_of_such_a_program_is_read_back() -> None:
    for low in (compiled(ATTENTION, "tiles-as-one", **HEADS), compiled(CAUSAL, "tiles-as-one", **COUNTED)):
        program = as_one(low).program
        assert parse_program(str(program)) == program


@pytest.mark.slow
def test_the_block_of_each_tile_is_known_for_a_sample() -> None:
    low = compiled(CAUSAL, "tiles-as-one", **COUNTED)
    chosen, other = as_one(low).program, plan_schedule(plain(low), low.chip).program
    total = 4 * COUNTED["H"]
    assert all(blocks_with([n], chosen, total) == blocks_with([n], other, total) != () for n in range(total))


TAILS = {"H": 10, "S": 250, "D": 32, "BM": 64, "BN": 32}


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "sizes", "chip"),
    [
        (ATTENTION, TAILS, "910B2"),
        (ATTENTION, TAILS, "950"),
        (SPLIT, {"B": 32, "H": 8, "G": 2, "S": 500, "D": 64, "P": 2}, "910B2"),
        (CAUSAL, COUNTED, "910B2"),
        pytest.param(WINDOW, {"H": 16, "S": 250, "W": 100, "D": 64, "BM": 64, "BN": 32}, "910B2", marks=pytest.mark.long),
        pytest.param(BACKWARD, {"H": 16, "S": 250, "D": 64, "BM": 32, "BN": 32}, "950", marks=pytest.mark.long),
        pytest.param(MLA, {"B": 32, "H": 32, "S": 200, "C": 128, "R": 64, "BM": 32, "BN": 32}, "910B2", marks=pytest.mark.long),
    ],
    ids=["tails", "tails on the 950", "split decode", "causal", "window", "backward", "mla"],
)
def test_the_numbers_are_the_same(text: str, sizes: dict[str, int], chip: str) -> None:
    low, k = compiled(text, "tiles-as-one", "past-l2", chip=chip, **sizes), kernel(text, **sizes)
    arrays = arrays_for(k)
    meant = meaning(k, arrays)
    for seed in (None, 1):
        ran = as_one(low).run(arrays, strict=False, order=seed).as_meant(k, arrays)
        assert not ran.findings
        for name, want in meant.items():
            np.testing.assert_allclose(ran[name].astype(float), want.astype(float), rtol=4e-3, atol=4e-3)
