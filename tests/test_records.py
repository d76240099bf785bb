"""`tile_eg.records.dataclass` does what the standard library's decorator does."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tile_eg.records import dataclass as ours


def made_by(dataclass: Callable[..., Any]) -> dict[str, Any]:
    @dataclass
    class Open:
        a: int
        b: list[int] = dataclasses.field(default_factory=list)
        c: str = dataclasses.field(default="c", compare=False)
        d: int = dataclasses.field(kw_only=True, default=4)

    @dataclass(frozen=True)
    class Frozen:
        a: int
        b: str = dataclasses.field(default="b", repr=False)
        made: int = dataclasses.field(init=False, default=7)

    @dataclass(frozen=True)
    class Below(Frozen):
        e: float = 0.5

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", self.a + 1)

    @dataclass(frozen=True, eq=False)
    class Itself:
        a: int

    @dataclass(frozen=True)
    class Own:
        a: int

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    return {c.__name__: c for c in (Open, Frozen, Below, Itself, Own)}


STANDARD, OURS = made_by(dataclasses.dataclass), made_by(ours)
CALLS: dict[str, Callable[[dict[str, Any]], object]] = {
    "positions, then defaults": lambda c: vars(c["Open"](1, [2])),
    "by keyword": lambda c: vars(c["Open"](b=[3], a=1, d=9)),
    "too many": lambda c: c["Open"](1, [], "c", 4),
    "too few": lambda c: c["Open"](),
    "an unknown name": lambda c: c["Open"](1, x=2),
    "a factory anew each time": lambda c: c["Open"](1).b is c["Open"](1).b,
    "shown": lambda c: repr(c["Open"](1)).replace("made_by.<locals>.", ""),
    "shown without a field": lambda c: repr(c["Frozen"](1)),
    "shown as it wants": lambda c: repr(c["Own"](1)),
    "equal but for what is not compared": lambda c: c["Open"](1, c="x") == c["Open"](1, c="y"),
    "unequal": lambda c: c["Open"](1) == c["Open"](2),
    "of two classes": lambda c: c["Frozen"](1) == c["Below"](1),
    "the same by identity alone": lambda c: c["Itself"](1) == c["Itself"](1),
    "the hash": lambda c: hash(c["Frozen"](1, "x")),
    "its own hash": lambda c: hash(c["Own"](1)),
    "no hash": lambda c: hash(c["Open"](1)),
    "a field is kept": lambda c: setattr(c["Frozen"](1), "a", 2),
    "no new field": lambda c: setattr(c["Frozen"](1), "z", 2),
    "no field goes": lambda c: delattr(c["Frozen"](1), "a"),
    "behind the fields": lambda c: vars(c["Below"](1)),
    "replaced": lambda c: vars(dataclasses.replace(c["Below"](1), e=2.0)),
    "a field that is made is not replaced": lambda c: dataclasses.replace(c["Frozen"](1), made=2),
    "as a dictionary": lambda c: dataclasses.asdict(c["Below"](1)),
    "matched by place": lambda c: c["Below"].__match_args__,
}


def outcome(call: Callable[[dict[str, Any]], object], classes: dict[str, Any]) -> object:
    try:
        return call(classes)
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("what", CALLS)
def test_a_class_does_what_the_standard_one_does(what: str) -> None:
    first = outcome(CALLS[what], OURS)
    assert first == outcome(CALLS[what], STANDARD)
    assert outcome(CALLS[what], OURS) == first  # the method is now the compiled one


@ours(frozen=True)
class AtTheTop:
    a: int


def test_a_record_goes_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(AtTheTop(3))) == AtTheTop(3)


def test_a_class_without_a_text_has_none() -> None:
    assert AtTheTop.__doc__ is None
