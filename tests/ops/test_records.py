"""Records are what frozen dataclasses are, and compile their methods when they are first called."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from types import FunctionType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.program import Gm, Instr, Tile
from tile_eg.ops.records import changed, record
from tile_eg.timeline.work import Work
from tile_eg.timeline.works import Price


def point(decorator: Any) -> Any:
    class Point:
        """Where."""

        x: int
        y: tuple[int, ...] = ()
        name: str = field(default="p", compare=False)
        held: list[int] = field(default_factory=list, hash=False, compare=False, repr=False)
        z: int = field(kw_only=True, default=0)

    return decorator(Point)


A, B = point(record), point(dataclass(frozen=True))
POINTS = st.tuples(st.integers(0, 2), st.tuples(st.integers(0, 1)), st.sampled_from("pq"), st.integers(0, 1))


def both(values: tuple[Any, ...]) -> tuple[Any, Any]:
    x, y, name, z = values
    return A(x, y, name=name, z=z), B(x, y, name=name, z=z)


@given(POINTS, POINTS)
def test_they_compare_hash_and_show_as_frozen_dataclasses_do(first, second) -> None:
    (a, b), (c, d) = both(first), both(second)
    assert (a == c, hash(a) == hash(c), repr(a), asdict(a)) == (b == d, hash(b) == hash(d), repr(b), asdict(b))


def test_they_are_made_as_frozen_dataclasses_are() -> None:
    told = [str(inspect.signature(c)).replace(f"{c.__name__}", "") for c in (A, B)]
    assert [p.partition("=")[0] for p in told[0].split(", ")] == [p.partition("=")[0] for p in told[1].split(", ")]
    assert vars(A(1)) == vars(B(1)) and A(1).held is not A(1).held and A.__match_args__ == B.__match_args__


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((1, (), "", [], 2), {}), ((1,), {"w": 1}), ((1,), {"x": 1})]
)
def test_wrong_arguments_are_refused(arguments, named) -> None:
    for made in (A, B):
        with pytest.raises(TypeError, match=r"Point\.__init__\(\)"):
            made(*arguments, **named)


@pytest.mark.parametrize("name", ["x", "other"])
def test_a_field_is_neither_set_nor_deleted(name: str) -> None:
    for made in (A(1), B(1)):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(made, name, 2)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(made, name)


def test_nothing_is_compiled_before_it_is_called() -> None:
    fresh = point(record)
    assert not isinstance(vars(fresh)["__init__"], FunctionType)
    fresh(1)
    assert isinstance(vars(fresh)["__init__"], FunctionType)


@record
class Base:
    x: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", 2 * self.x)


@record
class Derived(Base):
    y: int = 1

    def __repr__(self) -> str:
        return "mine"


@record(eq=False, guarded=False)
class Alone:
    x: int = 1
    made: int = field(init=False, default_factory=lambda: 5)


def test_a_derived_record_has_the_fields_and_the_checks_of_both() -> None:
    made = Derived(2, 3)
    assert (made.x, made.y, made.twice) == (2, 3, 4) and made != Base(2)  # type: ignore[attr-defined]
    assert repr(made) == "mine" and replace(made, x=5).twice == 10  # type: ignore[attr-defined]


def test_a_record_without_comparison_is_equal_to_itself_alone() -> None:
    assert Alone() != Alone() and (alone := Alone()) == alone and hash(alone) == object.__hash__(alone)


def test_a_record_without_guard_leaves_its_fields_to_mypy() -> None:
    alone = Alone()
    alone.x = 2  # type: ignore[misc]
    assert (alone.x, alone.made) == (2, 5)


def test_a_method_of_ones_own_stays() -> None:
    class Odd:
        x: int

        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            return True

    assert hash(record(Odd)(1)) == 7 and record(Odd)(1) == 3


def test_one_that_compares_by_its_own_rule_alone_has_the_hash_of_its_fields() -> None:
    def odd(decorator: Any) -> Any:
        class Odd:
            x: int

            def __eq__(self, other: object) -> bool:
                return True

        return decorator(Odd)

    assert hash(odd(record)(1)) == hash(odd(dataclass(frozen=True))(1))


def test_a_change_takes_along_only_the_fields() -> None:
    made = changed(Base(2), x=3)
    assert made == Base(3) and "twice" not in vars(made)


def test_records_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Base(2))) == Base(2) and is_dataclass(Base)


@pytest.mark.parametrize("made", [Expr("const", (1,)), Tile("a"), Gm("A", ZERO, 1), Instr("mmad", Tile("a")), Work("mmad", 1, 2)])
def test_all_fields_are_there(made) -> None:
    assert {f.name for f in fields(made)} == vars(made).keys()
    assert replace(made) == made and Price(1.0, 2.0, "", 0).places == 1


def test_an_expression_that_was_hashed_is_pickled_without_its_hash() -> None:
    hash(e := Expr("add", (ONE, ZERO)))
    assert "_hash" in vars(e) and "_hash" not in vars(pickle.loads(pickle.dumps(e)))
