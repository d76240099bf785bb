"""The queue: which offer is taken up first, which are dropped, and what a larger effort goes on with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tile_eg.errors import PlanError, TileError
from tile_eg.search.form import Form, Setting
from tile_eg.search.moves import FIRST, REFINING, SEARCHING, Move
from tile_eg.search.queue import Made, Offer, Queue

USUAL = (0, 2, 9)


@dataclass(frozen=True)
class Timed:
    """In the place of a candidate: the queue asks for its time, and whether it can be launched and written."""

    microseconds: float
    launchable: bool = True
    unwritable: Exception | None = None
    schedule: None = None


@dataclass
class Search:
    """A queue over a form that takes 10 us, and the names of the offers in the order in which they were made."""

    made: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        setting: Any = Setting(None, None, None)  # type: ignore[arg-type]
        self.form = Form(setting, None, None, None)  # type: ignore[arg-type]
        self.queue = Queue(setting, lambda form, candidate: (), (TileError,))
        self.form.candidates = (Timed(10.0),)  # type: ignore[assignment]
        self.queue.add(self.form)

    def offer(
        self, name: str, bound: float, gives: float = 10.0, tries: tuple[int, int, int] = USUAL, when: int = FIRST,
        closer: float | None = None,
    ) -> None:  # fmt: skip
        def make() -> Made:
            self.made.append(name)
            if gives < 0:
                raise TileError("cannot be")
            if gives == float("inf"):
                return Made(why="there are too few flags")
            return Made((Timed(gives),))  # type: ignore[arg-type]

        look = (lambda: closer) if closer is not None else None
        self.queue.put([Offer(Move("move", "equal", when, tries, ""), name, bound, make, self.form, closer=look)])


def test_the_best_bound_comes_first() -> None:
    search = Search()
    for bound in (7, 5, 6):
        search.offer(f"{bound}", bound, tries=(0, 9, 9))
    search.queue.run(1)
    assert search.made == ["5", "6", "7"]


def test_what_needs_a_search_of_its_own_waits_for_what_does_not() -> None:
    search = Search()
    for when in (SEARCHING, REFINING, FIRST):
        search.offer(f"{when}", when, when=when, tries=(0, 9, 9))
    search.queue.run(1)
    assert search.made == [f"{FIRST}", f"{REFINING}", f"{SEARCHING}"]


def test_an_offer_that_cannot_win_is_not_made() -> None:
    search = Search()
    search.offer("wins", 2, gives=4)
    search.offer("cannot", 5)
    search.queue.run(1)
    assert search.made == ["wins"]
    assert "bound" in next(t.why for t in search.queue.close() if not t.made)


def test_what_a_closer_look_rules_out_is_not_made_and_told_with_its_bound() -> None:
    search = Search()
    search.offer("wins", 1, gives=4, closer=3)
    search.offer("cannot", 2, closer=5)
    search.queue.run(1)
    dropped = next(t for t in search.queue.close() if not t.made)
    assert (search.made, dropped.offer.what, dropped.offer.bound) == (["wins"], "cannot", 5)


def test_what_a_closer_look_rules_out_spends_no_budget() -> None:
    search = Search()
    search.offer("cannot", 1, tries=(0, 1, 1), closer=11)
    search.offer("made", 2, gives=9, tries=(0, 1, 1))
    search.queue.run(1)
    assert search.made == ["made"]


def test_nobody_looks_closer_at_what_its_bound_rules_out() -> None:
    search = Search()
    search.offer("cannot", 12, closer=0)
    search.queue.run(1)
    assert not search.made


@pytest.mark.parametrize(("effort", "made"), [(0, 0), (1, 2), (2, 3)])
def test_an_effort_makes_as_many_as_it_says(effort: int, made: int) -> None:
    search = Search()
    for n in range(3):
        search.offer(str(n), n)
    search.queue.run(effort)
    assert len(search.made) == made


def test_a_larger_effort_goes_on_where_the_smaller_one_ended() -> None:
    search = Search()
    for n in range(4):
        search.offer(str(n), n)
    search.queue.run(1)
    search.queue.run(2)
    assert search.made == ["0", "1", "2", "3"]


def test_what_is_found_is_the_best() -> None:
    search = Search()
    search.offer("slower", 1, gives=12)
    search.offer("faster", 2, gives=8)
    search.queue.run(1)
    assert search.queue.best == 8 and [c.microseconds for c in search.form.candidates] == [8, 10, 12]


def test_an_offer_that_fails_is_told_and_the_search_goes_on() -> None:
    search = Search()
    search.offer("fails", 1, gives=-1)
    search.offer("works", 2, gives=9)
    search.queue.run(1)
    told = search.queue.close()
    assert [t.why for t in told] == ["cannot be", ""] and search.queue.best == 9


def test_what_gives_nothing_leaves_its_try_to_the_next() -> None:
    search = Search()
    for name, gives in (("no", float("inf")), ("first", 9), ("second", 8)):
        search.offer(name, 5, gives=gives, tries=(0, 1, 9))
    search.queue.run(1)
    assert search.made == ["no", "first"]


def test_what_the_budget_left_is_told() -> None:
    search = Search()
    search.offer("left", 1, tries=(0, 0, 1))
    search.queue.run(1)
    assert ["budget" in t.why for t in search.queue.close()] == [True]


def test_the_best_that_cannot_be_written_is_dropped_and_told() -> None:
    search = Search()
    why = PlanError("no field is that wide")
    search.form.candidates = (Timed(7.0, unwritable=why), Timed(8.0, unwritable=why), *search.form.candidates)  # type: ignore[assignment]
    assert search.queue.best == 10.0
    assert [error for _, error in search.form.dropped] == [why, why]


def test_where_as_many_lack_flags_as_may_be_made_the_others_wait() -> None:
    search, lacking = Search(), Made(dropped=((1.0, PlanError("there are too few flag ids")),))
    made: list[int] = []
    for n in range(5):
        make = lambda n=n: made.append(n) or lacking  # noqa: E731
        search.queue.put([Offer(Move("move", "equal", FIRST, USUAL, ""), f"{n}", n, make, search.form)])
    search.queue.run(1)
    assert made == [0, 1]
    search.queue.run(2)
    assert made == [0, 1, 2, 3, 4]
