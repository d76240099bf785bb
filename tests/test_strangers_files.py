"""Files that are data execute nothing, and write nothing but what was asked for; only Python does, and says so."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from tile_eg.cli.app import run
from tile_eg.frontend.text import load_text

ADD = """kernel add[N=64](A: f32[N]) -> C: f32[N] {
  grid b = 1
  shared a: f32[N]
  a = A[0]
  a = a + 1
  C[0] = a
}
"""
CALLS = "__import__('os').system('touch out')"


class Touches:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("out"),)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("k.tile", ADD.replace("N=64", f"N={CALLS}"), ["check"]),
        ("k.tile", ADD.replace("a + 1", f"a + {CALLS}"), ["emit"]),
        ("k.program", f"program add on 910B2 as AIV_ONLY, blocks {CALLS}, workspace 0\n", ["check"]),
        ("graph.json", json.dumps({"nodes": CALLS, "root_eclasses": [CALLS]}), ["extract"]),
        ("graph.json", pickle.dumps(Touches()).decode("latin-1"), ["extract"]),
    ],
)
def test_text_is_read_and_not_executed(name: str, text: str, command: list[str], here: Path) -> None:
    (here / name).write_text(text)
    assert run([*command, name]) == 1
    assert [f.name for f in here.iterdir()] == [name]


@pytest.mark.parametrize("form", ['(output "out" (Zero))', '(include "secret")', '(input f "secret")', "(push)"])
def test_rules_of_a_stranger_run_no_command_of_egglog(form: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "k.tile").write_text(ADD)
    (here / "mine.egg").write_text(form)
    assert run(["emit", "k.tile", "--rules", "mine.egg"]) == 1
    assert "is nothing that a theory holds" in capsys.readouterr().err and not (here / "out").exists()


@pytest.mark.slow
def test_an_array_with_a_pickle_in_it_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "k.tile").write_text(ADD)
    np.save(here / "a.npy", np.array([Touches()], dtype=object), allow_pickle=True)
    assert run(["run", "k.tile", "--input", "A=a.npy"]) == 1
    assert "not a .npy array file" in capsys.readouterr().err and not (here / "out").exists()




@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["x\n#error injected\n.tile", "x\\\n.tile", "x\r#error.tile", "\u2028x.tile"])
def test_the_name_of_a_file_adds_no_line_to_the_text(name: str) -> None:
    from tile_eg.search.compiler import lower

    def lines(file: str) -> list[str]:
        compiled = lower(load_text(ADD, file).instantiate({}))
        return [re.sub(r"  //.*", "", line) for line in str(compiled.source).split("\n")]

    assert lines(name) == lines("x.tile")


@pytest.mark.parametrize("command", ["check", "emit", "run", "explain", "export", "compare-models"])
def test_help_says_that_python_is_executed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run([command, "--help"])
    assert "executed" in capsys.readouterr().out


def test_help_of_simulate_says_what_confines_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    run(["simulate", "--help"])
    shown = capsys.readouterr().out
    assert "confined" in shown and "--unconfined" in shown and "./output" in shown
