"""A finding names a line of Ascend C; the report leads from there to the line that the user wrote."""

from __future__ import annotations

from tile_eg.report.findings import finding_text
from tile_eg.simulator.findings import Finding

SOURCE = "kernel k\n  c = a + b\n"
ASCEND_C = """\
Add(c, a, b, 64);  // k.tile:2  v-binary
DataCopy(C, c,
    Params(1));  // k.tile:9  ub-store
Stray(c);
"""


def lines(line: int, other: int = 0, source: str = SOURCE) -> list[str]:
    return finding_text(Finding("race", "both write", line, other), ASCEND_C, source).splitlines()


def test_a_finding_shows_its_statement_and_where_it_came_from() -> None:
    assert "race: both write" in lines(1)[0]
    assert lines(1)[1:] == ["      1 | Add(c, a, b, 64);  // k.tile:2  v-binary", "        = k.tile:2: c = a + b"]


def test_both_statements_of_a_race_are_shown() -> None:
    assert [t for t in lines(1, 4) if "|" in t] == ["      1 | Add(c, a, b, 64);  // k.tile:2  v-binary", "      4 | Stray(c);"]


def test_a_statement_is_shown_to_its_end() -> None:
    assert lines(2)[1:3] == ["      2 | DataCopy(C, c,", "        | Params(1));  // k.tile:9  ub-store"]


def test_an_origin_that_the_source_does_not_have_is_left_out() -> None:
    assert len(lines(2)) == 3
    assert len(lines(1, source="")) == 2


def test_a_line_that_the_text_does_not_have_is_left_out() -> None:
    assert len(lines(99)) == 1
