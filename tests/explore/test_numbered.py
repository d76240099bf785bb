"""Alternatives differ in decisions, keep their numbers, and can be asked for."""

from __future__ import annotations

from functools import lru_cache

import pytest

from tests.explore.kernels import kernel, lowered
from tile_eg.errors import TileError
from tile_eg.explore import Alternatives, alternatives, schedule_number, schedules_numbered
from tile_eg.explore.numbered import LEVELS, MEASURES, Numbered, front
from tile_eg.explore.side_by_side import SideBySide


@lru_cache(maxsize=4)
def found(name: str, k: int = 8) -> Alternatives:
    return alternatives(kernel(name), k=k)


def programs(of: Alternatives) -> list[str]:
    return [str(n.candidate.planned.program) for n in of.shown]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemm", "softmax"])
def test_number_one_is_what_emit_writes(name: str) -> None:
    assert programs(found(name))[0] == str(lowered(name).program)


@pytest.mark.slow
def test_numbers_do_not_depend_on_how_many_are_shown() -> None:
    assert programs(found("gemm"))[:3] == programs(found("gemm", k=3))


@pytest.mark.slow
def test_no_program_has_two_numbers() -> None:
    assert len(set(programs(found("gemm", k=12)))) == len(found("gemm", k=12).shown)


@pytest.mark.slow
def test_every_alternative_says_what_it_decides_otherwise() -> None:
    told = str(found("gemm")).split("what differs from 1")[1]
    for n in found("gemm").shown[1:]:
        assert f"\n{n.number}:\n" in told
    assert "instead of" in told


@pytest.mark.slow
def test_alternatives_that_differ_alike_from_the_first_say_how_they_differ_from_each_other() -> None:
    of = found("gemm")
    twins = [Numbered(n, of.shown[1].candidate) for n in (3, 4)]
    third, fourth = str(Alternatives(of.lowered, [*of.shown[:2], *twins], 4)).split("\n3:\n")[1].split("\n4:\n")
    assert "unlike 2" in third and "unlike 3" not in third and "unlike 2" in fourth and "unlike 3" in fourth


@pytest.mark.slow
def test_the_table_has_the_time_the_bound_and_the_bytes_of_each() -> None:
    shown = str(found("gemm"))
    for word in ("predicted", "bound by", *map(str, LEVELS), "workspace", "100 %"):
        assert word in shown


def test_a_time_that_what_is_assumed_may_put_before_the_first_is_open() -> None:
    of = found("gemm")
    first, last = of.shown[0], of.shown[-1]
    twin = Numbered(2, first.candidate)
    assert twin.is_open(first) and not first.is_open(first)
    assert first.time in str(of) and " to " in first.time
    assert "100 %, open" in str(Alternatives(of.lowered, [first, twin], 2))
    assert last.is_open(first) == (last.microseconds <= first.candidate.planned.cost.on_cores[1])


@pytest.mark.slow
def test_behind_the_schedules_of_the_search_stand_runners_up_of_decisions() -> None:
    assert len(found("softmax").shown) > len(lowered("softmax").candidates)


@pytest.mark.slow
def test_none_of_the_pareto_front_is_beaten() -> None:
    measures = ("time", "ub", "workspace")
    shown = alternatives(kernel("softmax"), pareto=measures).shown
    values = [tuple(MEASURES[m](n) for m in measures) for n in shown]
    for a in values:
        assert not [b for b in values if b != a and all(x <= y for x, y in zip(b, a, strict=True))]


def test_a_front_in_one_measure_is_its_least() -> None:
    everything = found("gemm").shown
    (best,) = front(everything, ["l1"])
    assert MEASURES["l1"](best) == min(MEASURES["l1"](n) for n in everything)


def test_an_unknown_measure_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TileError, match="did you mean `workspace`"):
        alternatives(kernel("gemm"), pareto=["time", "workspac"])


@pytest.mark.slow
def test_a_schedule_is_had_by_its_number() -> None:
    assert str(schedule_number(2, kernel("softmax")).candidate.planned.program) == programs(found("softmax"))[1]


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, -1, 99])
def test_a_number_that_none_has_is_refused_with_those_there_are(number: int) -> None:
    with pytest.raises(TileError, match="this kernel has 1 to "):
        schedule_number(number, kernel("softmax"))


def pair() -> tuple[Numbered, Numbered]:
    one, two = schedules_numbered([1, 2], kernel("gemm"))
    return one, two


@pytest.mark.slow
def test_two_schedules_are_compared_in_every_respect() -> None:
    text = str(SideBySide(*pair()))
    for section in ("decisions of 2", "time", "instructions", "memory", "Ascend C", "--- schedule 1", "+++ schedule 2"):
        assert section in text


@pytest.mark.slow
def test_a_schedule_does_not_differ_from_itself() -> None:
    one, _ = pair()
    assert "the same text" in str(SideBySide(one, one))


@pytest.mark.slow
def test_texts_can_stand_in_two_columns() -> None:
    text = str(SideBySide(*pair(), columns=True))
    assert " | " in text
    assert "+++" not in text
