"""A run that goes wrong with the user's own rules alone is the user's error, and the rules are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_eg.cli import app

pytestmark = pytest.mark.slow

KERNEL = """kernel k(X: f32[16, 64]) -> Y: f32[16, 64] {
  grid bx = 1
  shared x: f32[16, 64]
  x = X[0, 0]
  x = exp(x)
  Y[0, 0] = x
}
"""
EQUAL = '(rule ((= v (Un "exp" x))) ((union v (Un "relu" x))) :ruleset algebra :name "lie" :law equal)'
IMPLEMENTS = """(rule ((= p (at v (UB s) r)) (= v (Un "exp" x))) ((union p (VUn "flat" "relu" (at x (UB s) r))))
      :ruleset vec :name "lie" :law implements)"""
IDLE = '(rule ((= v (Un "tanh" x))) ((union v (Un "relu" x))) :ruleset algebra :name "idle" :law equal)'


def ran(folder: Path, capsys: pytest.CaptureFixture[str], rules: str) -> tuple[int, str]:
    (folder / "k.tile").write_text(KERNEL)
    (folder / "mine.egg").write_text(rules)
    code = app.run(["run", str(folder / "k.tile"), "--rules", str(folder / "mine.egg")])
    return code, capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("rule", [EQUAL, IMPLEMENTS], ids=["equal", "implements"])
def test_a_rule_that_makes_a_run_wrong_is_named(rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = ran(tmp_path, capsys, rule)
    assert code == app.USER_ERROR and "these took part: 'lie'" in told


def test_a_rule_that_matched_nothing_is_not_blamed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "idle" not in ran(tmp_path, capsys, EQUAL + "\n" + IDLE)[1]


def test_an_equality_that_lies_sends_to_the_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "tile-eg audit" in ran(tmp_path, capsys, EQUAL)[1]


def test_a_run_that_is_good_with_own_rules_says_nothing_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(tmp_path, capsys, IDLE) == (app.GOOD, "")
