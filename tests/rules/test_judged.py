"""`make rule` finds what is wrong with a rule, and says what is good; `make rules` finds kernels that rules need."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from benchmarks.rules import judged, together
from benchmarks.rules.kernels import small
from benchmarks.rules.needed import Search
from tile_eg.errors import TileError
from tile_eg.rules import registry, selected
from tile_eg.rules.user import checked_among

ROOT = Path(__file__).parents[2]
ALGEBRA = (files("tile_eg.rules") / "20_algebra.egg").read_text()
MEASURED = re.compile(r"\d+\.\d+")


@pytest.mark.slow
def test_the_page_on_extending_shows_how_a_rule_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    shown = page.split("<!-- judged: v-axpy -->\n```text\n")[1].split("```")[0]
    assert judged.judged("v-axpy") == 0
    assert MEASURED.sub("#", capsys.readouterr().out) == MEASURED.sub("#", shown)


def test_a_name_that_no_rule_has_offers_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert judged.judged("v-axp") == 2
    assert "did you mean `v-axpy`" in capsys.readouterr().out


def test_a_theory_that_cannot_be_read_is_shown_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "20_algebra.egg").write_text(f"; open\n{ALGEBRA.rstrip()[:-1]}")
    monkeypatch.setattr(judged, "files", lambda package: tmp_path)
    assert judged.judged("neg") == 1
    line = 3 + ALGEBRA[: ALGEBRA.rindex("\n(")].count("\n")  # of the last rule, below one line more
    assert f"this parenthesis is never closed\n  --> 20_algebra.egg:{line}:1" in capsys.readouterr().out


@pytest.mark.slow
def test_types_of_rules_of_each_kind_are_good() -> None:
    assert [name for name in ("sigmoid", "v-axpy", "shape-red0", "panel-state", "split-depth") if not types_of(name).good] == []


def types_of(name: str) -> judged.Verdict:
    return judged.types(registry()[name])


@pytest.mark.slow
def test_a_rule_alone_keeps_its_line() -> None:
    line = 1 + ALGEBRA[: ALGEBRA.index(':name "neg"')].count("\n")
    wrong = judged.alone("neg", ALGEBRA).replace('"mul"', '"mull"')
    with pytest.raises(TileError) as caught:
        checked_among(selected(without=frozenset({"neg"})), "20_algebra.egg", wrong)
    assert caught.value.span and caught.value.span.line == line


def test_an_equality_without_a_law_is_no_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled = judged.alone("neg", ALGEBRA.replace(':name "neg" :law equal', ':name "neg"'))
    monkeypatch.setattr(judged, "alone", lambda name, text: spoiled)
    assert "this rule has no :law" in types_of("neg").found


@pytest.mark.long
def test_a_bound_that_is_too_narrow_is_a_bad_law(tmp_path: Path) -> None:
    for folder in ("tile_eg", "tests", "benchmarks", "examples", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    narrow = ALGEBRA.replace('(of "sigmoid")', "(1 0)")
    assert narrow != ALGEBRA
    (tmp_path / "tile_eg" / "rules" / "20_algebra.egg").write_text(narrow)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "benchmarks.rules", "sigmoid"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.findall(r"^(\w+) +(good|BAD):", done.stdout, re.M) == [("types", "good"), ("law", "BAD"), ("need", "good")]


@pytest.mark.slow
def test_a_kernel_that_does_not_need_a_rule_is_no_witness() -> None:
    assert Search({"copy": small("copy")}).witness("v-axpy", "copy") is None


@pytest.mark.slow
def test_another_kernel_is_found_where_the_known_one_is_gone() -> None:
    found = Search({n: small(n) for n in ("copy", "rsqrt")}).witness("rsqrt", "gone")
    assert found and (found.kernel, found.without) == ("rsqrt", None)


@pytest.mark.long
@pytest.mark.slow
def test_two_processes_find_the_known_kernel_and_another_for_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "choices", lambda: ["rsqrt", "v-axpy", "add-const"])
    found = together.witnesses({"rsqrt": "rsqrt", "add-const": "rsqrt", "v-axpy": "abs(y) + x / 4"})
    assert {w.rule: w.kernel for w in found} == {"rsqrt": "rsqrt", "v-axpy": "abs(y) + x / 4", "add-const": "x + 0"}
    assert all(w.needed for w in found)
