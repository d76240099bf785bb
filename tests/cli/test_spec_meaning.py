"""A spec that `emit` wrote knows what its kernel means: a text that computes anything else is bad, wherever the two are taken."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tile_eg.cli.app import run
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.meaning import meaning_text

EXAMPLES = Path(__file__).parents[2] / "examples"
Captured = pytest.CaptureFixture[str]
SCALED = """kernel scaled(A: f32[32, 64], C: f32[32, 64]) -> D: f32[32, 64] {
  shared a: f32[32, 64], c: f32[32, 64]
  a = A[0, 0]
  c = C[0, 0]
  D[0, 0] = a * 2 + c
}
"""


def emitted(folder: Path, file: Path, *options: str) -> tuple[str, str]:
    """The kernel's text and its spec, in a folder where nothing else is."""
    folder.mkdir(exist_ok=True)
    made = str(folder / "k.asc"), str(folder / "k.toml")
    assert run(["emit", str(file), *options, "-o", made[0]]) == run(["emit", str(file), *options, "--spec", "-o", made[1]]) == 0
    return made


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("scaled")
    (folder / "scaled.tile").write_text(SCALED)
    return emitted(folder / "moved", folder / "scaled.tile")


def simulated(capsys: Captured, text: str, spec: str, *options: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["simulate", text, "--args", spec, "--json", *options]) == code
    return json.loads(capsys.readouterr().out)


def changed(path: str, to: Path, old: str, new: str) -> str:
    text = Path(path).read_text()
    assert old in text
    to.write_text(text.replace(old, new, 1))
    return str(to)


@pytest.mark.slow
def test_the_right_text_is_compared_on_every_set(scaled: tuple[str, str], capsys: Captured) -> None:
    done = simulated(capsys, *scaled)
    assert [(c["inputs"], c["name"], c["good"]) for c in done["comparisons"]] == [("uniform", "D", True), ("wide", "D", True)]
    assert done["good"] and not done["not_compared"]


@pytest.mark.slow
def test_wrong_numbers_are_bad_though_no_rule_is_broken(scaled: tuple[str, str], tmp_path: Path, capsys: Captured) -> None:
    wrong = changed(scaled[0], tmp_path / "wrong.asc", "2.0f", "14.0f")
    done = simulated(capsys, wrong, scaled[1], code=1)
    assert not done["good"] and not done["findings"]
    assert [c["good"] for c in done["comparisons"]] == [False, False]


@pytest.mark.slow
def test_the_set_and_the_seed_may_be_chosen(scaled: tuple[str, str], capsys: Captured) -> None:
    first, other = (simulated(capsys, *scaled, "--inputs", "nan", "--seed", seed) for seed in "12")
    assert [c["inputs"] for c in first["comparisons"]] == ["nan"]
    assert first["outputs"][0]["not_finite"] and first["outputs"][0]["mean"] != other["outputs"][0]["mean"]


def test_an_array_of_ones_own_takes_the_place_of_a_drawn_one(scaled: tuple[str, str], tmp_path: Path, capsys: Captured) -> None:
    np.save(tmp_path / "A.npy", np.full((32, 64), 3, np.float32))
    np.save(tmp_path / "C.npy", np.full((32, 64), 1, np.float32))
    spec = changed(scaled[1], tmp_path / "one.toml", '# drawn, or: file = "A.npy"', 'file = "A.npy"')
    spec = changed(spec, tmp_path / "both.toml", '# drawn, or: file = "C.npy"', 'file = "C.npy"')
    done = simulated(capsys, scaled[0], spec)
    assert done["outputs"][0]["mean"] == 7 and [c["inputs"] for c in done["comparisons"]] == ["given"]


def test_what_a_spec_expects_itself_is_compared_with_that(scaled: tuple[str, str], tmp_path: Path, capsys: Captured) -> None:
    np.save(tmp_path / "zero.npy", np.zeros((32, 64), np.float32))
    spec = changed(scaled[1], tmp_path / "k.toml", "output = true", 'output = true\nexpect = "zero.npy"')
    done = simulated(capsys, scaled[0], spec, "--inputs", "uniform", code=1)
    assert [(c["name"], c["tolerance"]) for c in done["comparisons"]] == [("D", 1e-3)]


@pytest.mark.slow(but=5)
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("shape = [32, 64]", "shape = [32, 32]", "its meaning has A: f32\\[32, 64\\] as an input"),
        ('name = "C"', 'name = "B"', "its meaning has C: f32\\[32, 64\\]"),
        ("output = true", "", "as an output"),
        ("kernel scaled(", "kernel scaled", "the inputs are missing"),
        ('["uniform", "wide"]', '["wied"]', "no inputs called 'wied'"),
        ('["uniform", "wide"]', '"wide"', "a list of names"),
        ("seed = 0", "seed = -1", "`seed` is a whole number"),
    ],
)
def test_a_meaning_that_does_not_fit_is_told(
    old: str, new: str, words: str, scaled: tuple[str, str], tmp_path: Path, capsys: Captured
) -> None:
    spec = changed(scaled[1], tmp_path / "k.toml", old, new)
    capsys.readouterr()
    assert run(["simulate", scaled[0], "--args", spec]) == 1
    told = capsys.readouterr().err
    assert re.search(words, told), told
    assert "internal error" not in told


def test_without_a_meaning_a_run_says_that_it_compared_nothing(scaled: tuple[str, str], tmp_path: Path, capsys: Captured) -> None:
    text = Path(scaled[1]).read_text()
    start, end = text.index("inputs = ["), text.index("'''\n\n") + 4
    spec = tmp_path / "k.toml"
    spec.write_text((text[:start] + text[end:]).replace("# drawn, or:", 'generator = "uniform" #'))
    done = simulated(capsys, scaled[0], str(spec))
    assert done["good"] and done["not_compared"] == ["D"]
    assert run(["simulate", scaled[0], "--args", str(spec)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("good, 0 findings; compared with nothing: D")
    assert run(["simulate", scaled[0], "--args", str(spec), "--inputs", "wide"]) == 1
    assert "has no `meaning`" in capsys.readouterr().err


@pytest.mark.slow
def test_the_spec_of_a_program_says_that_it_has_no_meaning(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "scaled.tile").write_text(SCALED)
    assert run(["emit", str(tmp_path / "scaled.tile"), "--program", "-o", str(tmp_path / "k.program")]) == 0
    done = simulated(capsys, *emitted(tmp_path / "moved", tmp_path / "k.program"))
    assert done["not_compared"] == ["D"]
    assert "# no meaning:" in (tmp_path / "moved" / "k.toml").read_text()


@pytest.mark.slow
def test_a_schedule_taken_by_its_number_has_the_meaning_too(tmp_path: Path, capsys: Captured) -> None:
    sizes = ("--set", "M=64", "--set", "N=64", "--set", "K=128")
    done = simulated(capsys, *emitted(tmp_path, EXAMPLES / "gemm.tile", *sizes, "--schedule", "2"), "--inputs", "uniform")
    assert [c["good"] for c in done["comparisons"]] == [True]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.tile")), ids=lambda f: f.stem)
def test_the_text_of_every_example_reads_back(file: Path) -> None:
    kernel = load_text(file.read_text(), file.name).instantiate()
    assert load_text(meaning_text(kernel), "").instantiate() == kernel


def test_a_name_that_the_text_could_not_hold_leaves_it_out() -> None:
    import tile_eg
    import tile_eg.language as T

    @T.prim_func
    def named(A: T.Tensor((32, 64), "float32"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            grid = T.alloc_shared((32, 64), "float32")
            T.copy(A[0, 0], grid)
            T.copy(grid, C[0, 0])

    assert meaning_text(tile_eg.jit(named).kernel) == ""


@pytest.mark.slow
def test_what_was_never_written_is_not_told_as_nan(tmp_path: Path, capsys: Captured) -> None:
    head = "kernel half[N=64](A: f32[2, N]) -> C: f32[4, N]"
    text = head + " {\n  grid b = 1\n  shared a: f32[2, N]\n  a = A[0, 0]\n  C[0, 0] = a\n}\n"
    (tmp_path / "half.tile").write_text(text)
    for option, name in (("--spec", "half.toml"), ("--schedule=1", "half.asc")):
        assert run(["emit", str(tmp_path / "half.tile"), option, "-o", str(tmp_path / name)]) == 0
    assert run(["simulate", str(tmp_path / "half.asc"), "--args", str(tmp_path / "half.toml")]) == 1
    said = capsys.readouterr().out
    assert "128 of 256 elements of C are never written" in said and "are NaN" not in said
