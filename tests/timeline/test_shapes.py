"""How far the trips ahead are like those a period before: found as when every trip is looked at, and looked at once."""

from __future__ import annotations

import pytest
from timeline_programs import K, vexp

from tile_eg.ir.index import Expr, const, evaluate, less, minimum, var
from tile_eg.ir.program import Loop, When
from tile_eg.timeline.expressions import compiled, unsettled
from tile_eg.timeline.shapes import ONE_BY_ONE, Shapes, shapes_of

TRIPS = 700
TILE = (K * 3 + var("block")) % 40 * 2 + (K // 8) % 5
WAVES = [less(K % 7, 3), less(K % 20, 1) * less(K, 400), less(TILE % 9, var("block")), K // 100 % 2, const(1) - less(K, 650)]


def shapes(condition: Expr) -> Shapes:
    return shapes_of(Loop("k", TRIPS, (When(less(0, condition), (vexp(),)),)), unsettled, lambda _: const(0))


def first_other(holds: list[int], trips: range, period: int) -> int:
    return next((k for k in trips if holds[k] != holds[k - period]), trips.stop)


@pytest.mark.parametrize("condition", WAVES, ids=range(len(WAVES)))
def test_trips_are_alike_as_far_as_when_each_is_looked_at(condition: Expr) -> None:
    """Asked forwards, backwards and often, for any period, and for other values of what is outside of the loop."""
    of = shapes(condition)
    holds = {block: [evaluate(less(0, condition), {"block": block, "k": k}) for k in range(TRIPS)] for block in (3, 5)}
    for start in (20, 21, 30, 330, 649, 40, 25, 500):
        for period in (1, 2, 7, 20):
            for block in (3, 5):
                env, trips = {"block": block}, range(start, TRIPS - period)
                assert of.alike_until("k", env, trips, period) == first_other(holds[block], trips, period)


def test_no_stretch_of_trips_is_looked_at_twice() -> None:
    of = shapes(less(K % 7, 3))
    (shape,), seen = of.each, 0

    def counted(env: dict[str, int]) -> tuple[int, ...]:
        nonlocal seen
        seen += 1
        return shape.value(env)

    asked = Shapes([type(shape)(counted, shape.over, shape.bends, shape.outside)])
    ends = [asked.alike_until("k", {}, range(start, TRIPS), 7) for start in range(10, TRIPS)]
    assert set(ends) == {TRIPS} and seen <= 2 * ONE_BY_ONE


def test_an_expression_of_many_parts_has_its_values_after_it_was_asked_often() -> None:
    e = minimum(TILE * TILE, (TILE + 5) * TILE // 3) % 17
    value = compiled(e)
    points = [{"k": k, "block": b} for b in (3, 1, 3) for k in range(0, TRIPS, 3)]
    assert [value(p) for p in points] == [evaluate(e, p) for p in points]
