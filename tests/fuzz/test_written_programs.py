"""Programs as users write them, at all three levels: right ones give what their NumPy meaning gives, wrong ones
an error with a place. Of each kind the long suite has 2,000."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.beginner import beginner_programs
from tests.fuzz.broken import BEGINNER, DEVELOPER, EXPERT, broken
from tests.fuzz.developer import developer_programs
from tests.fuzz.expert import expert_programs
from tests.fuzz.written import Program, check_broken, check_valid

LEVELS = {
    "beginner": (beginner_programs, BEGINNER), "developer": (developer_programs, DEVELOPER), "expert": (expert_programs, EXPERT),
}  # fmt: skip
PARTS, EACH = 20, 100
level = pytest.mark.parametrize("level", LEVELS)
part = pytest.mark.parametrize("part", range(PARTS))
pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")


def every(programs: Any, check: Callable[..., None], count: int, first: int) -> None:
    """Checks so many programs; which ones follows from `first` alone."""

    @seed(first)
    @settings(max_examples=count, derandomize=False, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(programs, st.integers(0, 2**32))
    def each(program: Program, number: int) -> None:
        check(program, number)

    each()


def refused(ways: Any) -> Callable[[Program, int], None]:
    def check(program: Program, number: int) -> None:
        program.sizes = {name: max(1, n) for name, n in program.sizes.items()}  # an empty grid reads nothing
        check_broken(*broken(program, ways, number), program)

    return check


@pytest.mark.slow
@level
def test_a_right_program_gives_what_numpy_gives(level: str) -> None:
    every(LEVELS[level][0](), check_valid, 4, 1)


@pytest.mark.slow(but=1)
@level
def test_a_wrong_program_is_refused_at_a_place(level: str) -> None:
    every(LEVELS[level][0](), refused(LEVELS[level][1]), 25, 1)


@pytest.mark.long
@level
@part
def test_many_right_programs_give_what_numpy_gives(level: str, part: int) -> None:
    every(LEVELS[level][0](), check_valid, EACH, 1000 + part)


@pytest.mark.long
@level
@part
def test_many_wrong_programs_are_refused_at_a_place(level: str, part: int) -> None:
    every(LEVELS[level][0](), refused(LEVELS[level][1]), EACH, 1000 + part)


def test_what_is_made_follows_from_the_seed_alone() -> None:
    texts: list[list[str]] = [[], []]
    for found in texts:
        every(developer_programs(), lambda p, n, found=found: found.append(broken(p, DEVELOPER, n)[0]), 5, 7)
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 1
