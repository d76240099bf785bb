"""Dataclasses of which compilations make very many are made as others are, and cost less."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import pytest

from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.program import Gm, Instr, Tile
from tile_eg.ir.quick import quickly_made
from tile_eg.timeline.work import Work
from tile_eg.timeline.works import Price


@quickly_made
@dataclass(frozen=True)
class Point:
    x: int
    y: tuple[int, ...] = ()
    name: str = field(default="p", compare=False)


def test_it_is_made_compared_and_shown_like_any_other() -> None:
    assert (Point(1), Point(1, (2,)), Point(x=1, name="q")) == (Point(1, ()), Point(1, y=(2,)), Point(1))
    assert hash(Point(1, name="q")) == hash(Point(1)) and Point(1) != Point(2)
    assert repr(replace(Point(1), y=(3,))) == "Point(x=1, y=(3,), name='p')"


@pytest.mark.parametrize(("arguments", "named"), [((), {}), ((1, (), "", 2), {}), ((1,), {"z": 1}), ((1,), {"x": 1})])
def test_wrong_arguments_are_refused(arguments, named) -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__|__init__\(\)"):
        Point(*arguments, **named)


def test_a_field_that_is_made_anew_each_time_is_refused() -> None:
    @dataclass(frozen=True)
    class Held:
        of: list[int] = field(default_factory=list)

    with pytest.raises(TypeError, match="the field 'of' is more than a parameter"):
        quickly_made(Held)


@pytest.mark.parametrize("made", [Expr("const", (1,)), Tile("a"), Gm("A", ZERO, 1), Instr("mmad", Tile("a")), Work("mmad", 1, 2)])
def test_all_fields_are_there(made) -> None:
    assert {f.name for f in fields(made)} == vars(made).keys()
    assert replace(made) == made and Price(1.0, 2.0, "", 0).places == 1


def test_an_expression_that_was_hashed_is_pickled_without_its_hash() -> None:
    import pickle

    hash(e := Expr("add", (ONE, ZERO)))
    assert "_hash" in vars(e) and "_hash" not in vars(pickle.loads(pickle.dumps(e)))
