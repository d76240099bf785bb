"""The audit computes every term that the rules call equal, and finds the rule that lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extract.kernels import TRICKY
from tile_eg.cli import app
from tile_eg.egraph.audit import joined_by
from tile_eg.frontend.text import load_text
from tile_eg.laboratory.audit import audit_kernel
from tile_eg.search import search_options

pytestmark = pytest.mark.slow(but=4)

EXAMPLES = {f.stem: f.read_text() for f in sorted((Path(__file__).parents[2] / "examples").glob("*.tile"))}
SMALL = {
    "gemm": {"M": 40, "N": 70, "K": 100, "BM": 32, "BN": 64, "BK": 32}, "gemm_transposed": {"M": 40, "N": 70, "K": 100},
    "matmul_add": {"M": 40, "N": 70, "K": 100}, "softmax": {"M": 40, "N": 100},
}  # fmt: skip
WRONG = (
    '(rewrite (Un "exp" (Bin "sub" x y)) (Bin "mul" (Un "exp" x) (Un "exp" y)) '
    ':ruleset algebra :name "lie" :law rounding :within (8 0))'
)


def kernel(text: str, **sizes: int):
    return load_text(text, "test.tile").instantiate(sizes)


@pytest.mark.few(6)
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_all_terms_of_an_example_agree(name: str) -> None:
    done = audit_kernel(kernel(EXAMPLES[name], **SMALL.get(name, {})))
    assert done.terms >= done.classes and done.found == []


@pytest.mark.parametrize("name", sorted(TRICKY))
def test_all_terms_of_a_tricky_kernel_agree(name: str) -> None:
    assert audit_kernel(kernel(TRICKY[name])).found == []


def test_k_tiling_are_compared_trip_by_trip() -> None:
    done = audit_kernel(kernel(EXAMPLES["gemm"], **SMALL["gemm"]))
    assert done.compared > 0


def test_a_rule_that_lies_is_named() -> None:
    done = audit_kernel(kernel(EXAMPLES["softmax"]), search_options(rules=[WRONG]))
    assert done.found and all("lie" in d.rules for d in done.found)


def test_the_rules_that_joined_two_terms_are_those_that_cannot_be_left_out() -> None:
    assert joined_by(["a", "b", "c"], lambda names: {"b", "c"} <= names) == ("b", "c")


def test_the_command_says_that_all_agree(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "softmax.tile"
    assert app.run(["audit", str(path), "--set", "M=40"]) == 0
    assert "all agree" in capsys.readouterr().out


def test_the_command_says_what_it_does_not_look_at(capsys: pytest.CaptureFixture[str]) -> None:
    app.run(["audit", str(Path(__file__).parents[2] / "examples" / "softmax.tile"), "--set", "M=40"])
    assert "`implements`" in capsys.readouterr().out


def test_the_command_blames_a_users_rule_on_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.egg").write_text(WRONG)
    path = Path(__file__).parents[2] / "examples" / "softmax.tile"
    assert app.run(["audit", str(path), "--set", "M=40", "--rules", str(tmp_path / "mine.egg")]) == 1
    assert "joined by: lie" in capsys.readouterr().out.replace("row-operand, ", "").replace("lie, row-operand", "lie")
