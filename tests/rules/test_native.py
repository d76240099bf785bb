"""The way into egglog: what many commands make does not depend on how they get there."""

from __future__ import annotations

import tempfile

import pytest

from tile_eg.rules import native

COMMANDS = ["(datatype Math (Num2 i64) (Add Math Math))", '(rewrite (Add x y) (Add y x) :name "swap")'] + [
    f"(let $sum{n} (Add (Num2 {n}) (Num2 {n + 1})))" for n in range(50)
]


def rows(commands: list[str]) -> list[tuple[str, int]]:
    """The rows of each table once the rules ran."""
    egraph = native.load().EGraph()
    native.run_all(egraph, commands)
    native.run(egraph, "(run 3)")
    return sorted((name, n) for name, n in native.run(egraph, "(print-size)")[0].sizes)


def test_commands_go_in_by_a_file_and_where_there_is_no_folder_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    by_file = rows(COMMANDS)
    assert ("Add", 100) in by_file
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    assert rows(COMMANDS) == by_file


def test_a_command_that_is_refused_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="have type i64"):
        native.run_all(native.load().EGraph(), [*COMMANDS, '(let wrong (Num2 "a"))'])
