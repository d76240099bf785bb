"""`make quick` runs what is not slow, the first cases of what is slow but for them, and something of every room; `few` leaves
most cases of a test to the long suite."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.conftest import pytest_collection_modifyitems


@dataclass
class Node:
    nodeid: str


@dataclass
class Test(Node):
    """A collected test, with the `but` of the slow marks on it and on its file, and the number of a mark `few`."""

    __test__ = False
    slow: tuple[int, ...] = ()
    of_file: tuple[int, ...] = ()
    few: int | None = None
    marked: list[str] = field(default_factory=list)

    def add_marker(self, name: str) -> None:
        self.marked.append(name)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        if name == "few" and self.few:
            return pytest.Mark(name, (self.few,), {}, _ispytest=True)
        return pytest.Mark(name, (), {}, _ispytest=True) if name in self.marked else None

    def iter_markers_with_node(self, name: str) -> list[tuple[Node, pytest.Mark]]:
        file = Node(self.nodeid.partition("::")[0])
        found = [*((self, but) for but in self.slow), *((file, but) for but in self.of_file)]
        return [(node, pytest.Mark(name, (), {"but": but} if but else {}, _ispytest=True)) for node, but in found]


def quick(*tests: Test) -> list[str]:
    pytest_collection_modifyitems(list(tests))  # type: ignore[arg-type]
    return [t.nodeid for t in tests if t.marked == ["quick"]]


def test_what_is_not_slow_is_quick() -> None:
    assert quick(Test("f.py::a"), Test("f.py::b", (0,))) == ["f.py::a"]


def test_the_first_cases_of_a_slow_test_are_quick() -> None:
    assert quick(*(Test(f"f.py::a[{case}]", (2,)) for case in "xyz")) == ["f.py::a[x]", "f.py::a[y]"]


def test_a_slow_case_of_one_is_not() -> None:
    assert quick(Test("f.py::a[x]", (1, 0)), Test("f.py::a[y]", (1,))) == ["f.py::a[y]"]


def test_the_first_tests_of_a_slow_file_are_quick_but_for_those_that_are_slow_themselves() -> None:
    tests = Test("f.py::a", (0,), (2,)), Test("f.py::b", (), (2,)), Test("f.py::c", (), (2,)), Test("f.py::d", (), (2,))
    assert quick(*tests) == ["f.py::b", "f.py::c"]


def test_a_few_cases_are_spread_over_all_and_begin_with_the_first() -> None:
    cases = [Test(f"f.py::a[{case}]", few=3) for case in range(7)]
    assert quick(*cases) == ["f.py::a[0]", "f.py::a[2]", "f.py::a[4]"]
    assert [t.marked for t in cases if t.marked != ["quick"]] == [["long"]] * 4


def test_all_cases_stay_where_there_are_no_more_than_a_few() -> None:
    assert quick(*(Test(f"f.py::a[{case}]", few=3) for case in "xy")) == ["f.py::a[x]", "f.py::a[y]"]


def test_every_room_has_quick_tests(request: pytest.FixtureRequest) -> None:
    rooms: dict[str, bool] = {}
    for item in request.session.items:
        room = item.path.parent.name
        rooms[room] = rooms.get(room, False) or item.get_closest_marker("quick") is not None
    assert [room for room, some in rooms.items() if not some] == []
