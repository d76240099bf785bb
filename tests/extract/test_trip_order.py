"""The order of a trip on a vector core: short chains side by side behind one barrier, and tiles used up one after the other."""

from __future__ import annotations

from tile_eg.egraph import Node
from tile_eg.extract import Step
from tile_eg.extract.schedule import Storage
from tile_eg.extract.trip_order import LOAD, STORE, Timed, Trip, V
from tile_eg.ops.types import F32, Level

FLAG = 1.0
Given = tuple[str, str, tuple[int, ...], int, float, int]


def trip(*steps: Given, room: int = 1 << 20) -> Trip:
    """Of steps as operation, pipe, what they read and write, cycles, lag; a result is there 20 cycles after its instruction."""
    ids = {i for _, _, reads, writes, *_ in steps for i in (*reads, writes)}
    storages = {i: Storage(i, f"s{i}", Level.UB, 64, 64, F32, None, slot_bytes=16384) for i in ids}
    return Trip([_timed(n, *s) for n, s in enumerate(steps)], storages, FLAG, room)


def _timed(n: int, op: str, pipe: str, reads: tuple[int, ...], writes: int, busy: float, lag: int) -> Timed:
    step = Step(Node(n, op, n + 1, (), (), 1, ()), 1, pipe, int(busy), writes, reads, reads, lag)
    return Timed(step, busy, 20, frozenset(reads), frozenset({writes}))


def unary(read: int, written: int, busy: float = 50.0, lag: int = 0) -> Given:
    return "VUn", V, (read,), written, busy, lag


def names(found: Trip) -> list[int]:
    return [step.node.index for step in found.ordered()]


def chain(first: int) -> list[Given]:
    return [unary(i, i + 1) for i in range(first, first + 3)]


def test_what_needs_nothing_of_each_other_shares_a_barrier():
    found = trip(*chain(1), *chain(11))
    assert found.cycles(names(found)) < found.cycles([0, 1, 2, 3, 4, 5]) - 15


def test_what_reads_a_result_stays_behind_it():
    assert names(trip(unary(1, 2), unary(2, 3), unary(3, 4))) == [0, 1, 2]


def test_steps_of_other_lags_are_not_passed():
    found = trip(unary(1, 2), unary(2, 3), unary(11, 12, lag=1), unary(12, 13, lag=1))
    assert names(found) == [0, 1, 2, 3]


def test_of_two_tiles_that_come_one_after_the_other_the_first_is_used_up_first():
    loads: list[Given] = [("WsToUB", LOAD, (), i, 300.0, 0) for i in (1, 2)]
    found = trip(*loads, unary(1, 11, 100), unary(2, 12, 100), unary(12, 22, 100), unary(11, 21, 100))
    assert names(found).index(5) < names(found).index(4)


def test_a_store_goes_with_what_it_stores():
    store: Given = ("UBToWS", STORE, (4,), 5, 90.0, 0)
    order = names(trip(*chain(1), store, *chain(11)))
    assert order != sorted(order) and order.index(3) == order.index(2) + 1


def test_a_trip_that_needs_more_than_there_is_makes_a_tile_where_another_has_been_read():
    """Two tiles of one that was loaded: both at a time need three places, one after the other two."""
    made: list[Given] = [("VRedBlock", V, (1,), i, 50.0, 0) for i in (2, 3)]
    used: list[Given] = [("VRedBlock", V, (i, 1), i, 50.0, 0) for i in (2, 3)]
    tight, roomy = (names(trip(("WsToUB", LOAD, (), 1, 300.0, 0), *made, *used, room=n * 16384)) for n in (2, 3))
    assert tight == [0, 1, 3, 2, 4] and {*roomy[1:3]} == {1, 2}
