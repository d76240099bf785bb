"""How far tuning is, on a terminal and elsewhere."""

from __future__ import annotations

import sys

import pytest

from tests.tuning.conftest import KERNEL
from tile_eg.frontend.text import load_text
from tile_eg.search.tuned_file import TIMELINE, path_of
from tile_eg.tuning import Tuning
from tile_eg.tuning.journal import Record
from tile_eg.tuning.progress import progress

Captured = pytest.CaptureFixture[str]


def one_tried() -> Tuning:
    found = Tuning(load_text(KERNEL).instantiate({}), "910B2", TIMELINE, path_of("k"), "", 4, 8)
    found.records.append(Record("a", (), "", 3.0, 3.0))
    return found


def test_nothing_is_shown_where_nobody_looks(capsys: Captured) -> None:
    told: list[str] = []
    with progress(4, told.append) as (seen, tell):
        seen(one_tried())
        tell("note: a line")
    assert capsys.readouterr().err == "" and told == ["note: a line"]


def test_a_terminal_shows_how_many_were_tried_and_the_best(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress(4, pytest.fail) as (seen, tell):
        seen(one_tried())
        tell("note: a line")
    told = capsys.readouterr().err
    assert "1/4" in told and "best 3 us" in told and "note: a line" in told
