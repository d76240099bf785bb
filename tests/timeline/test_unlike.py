"""Many unlike tiles of a core: some are run for all, and few are run one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.timeline.timeline_programs import load, set_, store, vector_program, vexp, wait
from tile_eg.chips import load_chip
from tile_eg.ir.index import const, minimum, var
from tile_eg.ir.program import Loop, Program, Tasks
from tile_eg.timeline import unlike
from tile_eg.timeline.engine import run
from tile_eg.timeline.unlike import LONGEST_RING, MOST, Sample, sampled

CHIP = load_chip("910B2")


def growing(tiles: int, ring: int = 2, most: int = 10**6) -> Program:
    """Tiles of which each has a trip more than the one before, up to a number; the flags of their stores take turns in a ring."""
    trip = load(), set_("MTE2", "V"), wait("MTE2", "V"), vexp(), set_("V", "MTE2"), wait("V", "MTE2")
    turn = var("task") % ring
    stored = set_("V", "MTE3", turn), wait("V", "MTE3", turn), store(), set_("MTE3", "V", turn), wait("MTE3", "V", turn)
    inner = Loop("j", tiles, trip, until=minimum(var("task") + 1, most))
    return vector_program(Tasks("task", tiles, (inner, *stored), until=const(tiles)), blocks=2)


def timed(program: Program, monkeypatch: pytest.MonkeyPatch, most: int):
    monkeypatch.setattr(unlike, "MOST", most)
    return run(program, CHIP)


@pytest.mark.parametrize("most", [10**6, 70])
def test_some_tiles_tell_what_all_take(monkeypatch, most: int) -> None:
    every, some = (timed(growing(3 * unlike.SAMPLED, most=most), monkeypatch, n) for n in (10**6, 10))
    assert some.cycles == pytest.approx(every.cycles, rel=1e-3)
    assert some.busy == pytest.approx(every.busy, rel=1e-3)
    assert some.bytes == pytest.approx(every.bytes, rel=1e-3)


def test_no_more_are_run_where_there_are_more() -> None:
    found = [sampled(growing(tiles), 0) for tiles in (10 * MOST, 100 * MOST)]
    assert all(s and len(s.tiles) <= unlike.SAMPLED + LONGEST_RING + 3 for s in found)


def test_each_comes_where_it_does_in_its_ring_and_the_ends_are_run() -> None:
    some = sampled(growing(2001, ring=3), 0)
    assert some and all((b - a) % 3 == 1 for a, b in zip(some.tiles, some.tiles[1:], strict=False))
    assert some.tiles[0] == 0 and list(some.tiles[-2:]) == [1999, 2000]


def test_all_are_run_where_some_do_not_tell_enough(monkeypatch) -> None:
    program = growing(60)
    every = timed(program, monkeypatch, 10**6)
    monkeypatch.setattr(Sample, "trusted", lambda self, each: False)
    assert timed(program, monkeypatch, 10) == every


def test_few_tiles_and_those_that_are_alike_are_not_sampled() -> None:
    alike = Tasks("task", 1000, (Loop("j", 9, (load(),)),), until=const(1000))
    assert sampled(growing(MOST), 0) is None and sampled(vector_program(alike), 0) is None


def test_nor_are_tiles_whose_rings_are_long() -> None:
    assert sampled(growing(1000, ring=LONGEST_RING + 1), 0) is None


def test_what_neighbours_do_not_tell_is_not_trusted() -> None:
    trips, between = np.arange(10), (np.array([4.0]), np.array([1.0]))
    found = Sample(list(range(10)), trips, 1, between)
    assert found.trusted(np.arange(10) * 5.0 + 3)
    assert not found.trusted(np.arange(10) % 2 * 5.0 + 3)


def test_beyond_the_numbers_of_trips_that_were_run_it_goes_on_alike() -> None:
    found = Sample(range(5), np.array([0, 2, 4, 8, 9]), 1, (np.array([1, 6]), np.array([1.0, 2.0])))
    assert found.total(np.array([0.0, 20, 40, 0, 0])) == pytest.approx(10 + 2 * 60)
