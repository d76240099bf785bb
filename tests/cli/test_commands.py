"""Every command does what its help says, on a real kernel."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tile_eg
from tile_eg.cli.app import run
from tile_eg.simulator import build

EXAMPLES = Path(__file__).parents[2] / "examples"
ADD = str(EXAMPLES / "vector_add.tile")
SMALL = ("--set", "M=40", "--set", "N=72")
Captured = pytest.CaptureFixture[str]


def printed(capsys: Captured, *arguments: str | Path, code: int = 0) -> str:
    """What a command line prints; its exit code has to be the given one, and standard error stays empty."""
    assert run([str(a) for a in arguments]) == code
    out, error = capsys.readouterr()
    assert error == ""
    return out


def test_check_says_what_the_kernel_takes_and_how_many_blocks_it_has(capsys: Captured) -> None:
    tensors = "A: f32[40, 72], B: f32[40, 72], C: f32[40, 72]"
    assert printed(capsys, "check", ADD, *SMALL) == f"{ADD}: good (vector_add({tensors}), 1 block)\n"


@pytest.mark.parametrize(
    ("option", "part"),
    [((), "__aicore__ void vector_add("), (("--program",), "program vector_add on 910B2"), (("--host",), "launch")],
)
def test_emit_prints_each_form(option: tuple[str, ...], part: str, capsys: Captured) -> None:
    assert part in printed(capsys, "emit", ADD, *option, *SMALL)


@pytest.mark.slow
def test_emit_writes_a_file(tmp_path: Path, capsys: Captured) -> None:
    assert "wrote" in printed(capsys, "emit", ADD, "-o", tmp_path / "add.asc", *SMALL)
    assert "vector_add" in (tmp_path / "add.asc").read_text()


@pytest.mark.slow
def test_emit_to_a_place_that_cannot_be_written_is_refused(tmp_path: Path, capsys: Captured) -> None:
    assert run(["emit", ADD, "-o", str(tmp_path / "no" / "add.asc"), *SMALL]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_emit_for_another_chip_names_it(capsys: Captured) -> None:
    assert "on 910B4" in printed(capsys, "emit", ADD, "--program", "--chip", "910B4", *SMALL)


@pytest.mark.slow
def test_the_same_input_gives_the_same_text(capsys: Captured) -> None:
    assert printed(capsys, "emit", ADD, *SMALL) == printed(capsys, "emit", ADD, *SMALL)


@pytest.mark.slow
def test_run_compares_with_the_meaning_and_predicts_the_time(capsys: Captured) -> None:
    out = printed(capsys, "run", ADD, *SMALL)
    for part in ("simulator: good", "largest error", "predicted", "MTE2", "GM -> UB", "UB"):
        assert part in out


@pytest.mark.slow
def test_run_prints_one_json_object_on_demand(capsys: Captured) -> None:
    data = json.loads(printed(capsys, "run", ADD, "--json", *SMALL))
    assert (data["kernel"], data["chip"], data["good"], data["findings"]) == ("vector_add", "910B2", True, [])
    assert [(o["name"], o["inputs"]) for o in data["outputs"]] == [("C", "uniform"), ("C", "wide")]
    assert data["cost"]["microseconds"] > data["cost"]["launch_microseconds"] > 0
    assert data["moved_bytes"] == {"GM->UB": 2 * 40 * 72 * 4, "UB->GM": 40 * 72 * 4}


@pytest.mark.slow
def test_run_takes_inputs_and_keeps_what_it_used(tmp_path: Path, capsys: Captured) -> None:
    a = np.arange(40 * 72, dtype=np.float32).reshape(40, 72)
    np.save(tmp_path / "a.npy", a)
    printed(capsys, "run", ADD, *SMALL, "--input", f"A={tmp_path / 'a.npy'}", "--save", tmp_path / "kept")
    kept = {n: np.load(tmp_path / "kept" / f"{n}.npy") for n in "ABC"}
    assert (kept["A"] == a).all()
    assert (kept["C"] == a + kept["B"]).all()


@pytest.mark.slow
def test_run_takes_open_sizes_from_the_arrays(tmp_path: Path, capsys: Captured) -> None:
    np.save(tmp_path / "a.npy", np.ones((24, 40), np.float32))
    printed(capsys, "run", ADD, "--input", f"A={tmp_path / 'a.npy'}", "--save", tmp_path)
    assert np.load(tmp_path / "C.npy").shape == (24, 40)


@pytest.mark.parametrize(
    ("arrays", "sizes", "words"),
    [
        ({"A": (24, 40)}, ("--set", "M=32"), "'A' has shape (24, 40), not (32, 40)"),
        ({"A": (24, 40), "B": (24, 48)}, (), "N is 40 in `A` and 48 in `B`"),
        ({"A": (24,)}, (), "`A` has 2 dimensions"),
    ],
)
def test_arrays_and_sizes_that_disagree_are_refused(
    arrays: dict[str, tuple[int, ...]], sizes: tuple[str, ...], words: str, tmp_path: Path, capsys: Captured
) -> None:
    for name, shape in arrays.items():
        np.save(tmp_path / f"{name}.npy", np.ones(shape, np.float32))
    inputs = [part for name in arrays for part in ("--input", f"{name}={tmp_path / name}.npy")]
    assert run(["run", ADD, *sizes, *inputs]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_run_draws_other_inputs_from_another_seed(tmp_path: Path, capsys: Captured) -> None:
    for seed in "12":
        printed(capsys, "run", ADD, *SMALL, "--seed", seed, "--save", tmp_path / seed)
    assert (np.load(tmp_path / "1" / "A.npy") != np.load(tmp_path / "2" / "A.npy")).any()


@pytest.mark.slow
def test_run_takes_the_sets_of_inputs_that_are_named(tmp_path: Path, capsys: Captured) -> None:
    data = json.loads(printed(capsys, "run", ADD, "--json", *SMALL, "--inputs", "nan,wide", "--save", tmp_path))
    assert [(o["inputs"], o["good"]) for o in data["outputs"]] == [("nan", True), ("wide", True)]
    assert np.isnan(np.load(tmp_path / "A.npy")).any()
    wide = {n: np.load(tmp_path / "wide" / f"{n}.npy") for n in "ABC"}
    assert np.abs(wide["A"]).max() > 100
    np.testing.assert_array_equal(wide["C"], wide["A"] + wide["B"])


@pytest.mark.slow
def test_inputs_that_are_none_are_refused_before_anything_runs(capsys: Captured) -> None:
    assert run(["run", ADD, *SMALL, "--inputs", "normal"]) == 1
    assert "there are no inputs called 'normal'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_kernel_that_does_not_write_all_of_its_output_is_its_authors_mistake(tmp_path: Path, capsys: Captured) -> None:
    text = "kernel half(A: f32[64, 64]) -> C: f32[64, 64] {\n  shared a: f32[32, 64]\n  a = A[0, 0]\n  C[0, 0] = a\n}\n"
    (tmp_path / "half.tile").write_text(text)
    out = printed(capsys, "run", tmp_path / "half.tile", code=1)
    assert "BAD, the kernel does not write all of its outputs" in out
    assert "error: 2048 of 4096 elements of C are never written, the first is C[32, 0]" in out
    assert "are NaN" not in out
    assert "half.tile:1:32" in out


@pytest.mark.slow
def test_a_program_that_leaves_what_it_should_write_is_bad(tmp_path: Path, capsys: Captured) -> None:
    text = printed(capsys, "emit", ADD, "--program", *SMALL)
    stores = [line for line in text.splitlines() if "ub_to_gm" in line]
    assert stores
    (tmp_path / "add.program").write_text("\n".join(line for line in text.splitlines() if line not in stores))
    assert "C is never written" in printed(capsys, "run", tmp_path / "add.program", code=2)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["emit", "run"])
def test_a_program_of_another_architecture_is_refused(command: str, tmp_path: Path, capsys: Captured) -> None:
    printed(capsys, "emit", ADD, "--program", "-o", tmp_path / "add.program", *SMALL)
    run([command, str(tmp_path / "add.program"), "--chip", "950"])
    assert "this program is for 910B2 (dav-2201), and 950 is dav-3510" in capsys.readouterr().err


def test_a_program_for_another_chip_of_its_architecture_bears_that_chips_name(tmp_path: Path, capsys: Captured) -> None:
    printed(capsys, "emit", ADD, "--program", "-o", tmp_path / "add.program", *SMALL)
    assert "for 910B4, written by" in printed(capsys, "emit", tmp_path / "add.program", "--chip", "910B4")


@pytest.mark.slow
def test_run_takes_a_program_and_says_that_it_compares_with_nothing(tmp_path: Path, capsys: Captured) -> None:
    printed(capsys, "emit", ADD, "--program", "-o", tmp_path / "add.program", *SMALL)
    assert "compared with nothing" in printed(capsys, "run", tmp_path / "add.program")


@pytest.mark.slow
def test_a_program_that_breaks_the_machines_rules_is_bad_with_its_finding(tmp_path: Path, capsys: Captured) -> None:
    text = printed(capsys, "emit", ADD, "--program", *SMALL)
    lines = [line for line in text.splitlines() if not line.strip().startswith(("set MTE2 -> V", "wait MTE2 -> V"))]
    (tmp_path / "add.program").write_text("\n".join(lines))
    out = printed(capsys, "run", tmp_path / "add.program", code=2)
    for part in ("BAD", "race", "AscendC::Add("):
        assert part in out


@pytest.mark.slow
def test_sizes_of_a_program_are_fixed(tmp_path: Path, capsys: Captured) -> None:
    printed(capsys, "emit", ADD, "--program", "-o", tmp_path / "add.program", *SMALL)
    assert run(["run", str(tmp_path / "add.program"), *SMALL]) == 1
    assert "fixed" in capsys.readouterr().err


@pytest.mark.slow
def test_without_a_compiler_running_is_refused_with_what_to_install(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "find_compiler", lambda: None)
    assert run(["run", ADD, *SMALL]) == 1
    said = capsys.readouterr().err
    assert "C++ compiler" in said
    assert "install" in said


@pytest.mark.slow
def test_without_a_compiler_everything_else_works(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "find_compiler", lambda: None)
    for command in ("check", "emit", "explain"):
        printed(capsys, command, ADD, *SMALL)


@pytest.mark.slow
def test_explain_shows_instructions_places_rules_decisions_and_what_lost(capsys: Captured) -> None:
    out = printed(capsys, "explain", ADD)
    for part in ("GmToUB(A)", "UB", "v-binary", "decisions", "alternatives", "also offered", "search"):
        assert part in out


@pytest.mark.slow
def test_explain_has_nothing_to_say_about_a_program(tmp_path: Path, capsys: Captured) -> None:
    printed(capsys, "emit", ADD, "--program", "-o", tmp_path / "add.program", *SMALL)
    assert run(["explain", str(tmp_path / "add.program")]) == 1
    assert "nothing was chosen" in capsys.readouterr().err


def test_rules_counts_by_theory_and_shows_each_rule(capsys: Captured) -> None:
    out = printed(capsys, "rules")
    assert "together" in out
    assert re.search("mmad-accumulate +implements", out)


def test_rules_of_one_theory_can_be_asked_for(capsys: Captured) -> None:
    assert "mmad-accumulate" not in printed(capsys, "rules", "31_vector")


def test_rules_that_round_are_listed_with_their_bounds(capsys: Captured) -> None:
    bounds = [line.split("   within ")[1] for line in printed(capsys, "rules", "20_algebra").splitlines() if "   within " in line]
    assert {"8 half steps and 4 of 1", "8 half steps", "1 half step"} <= set(bounds)


def test_an_unknown_theory_is_refused_with_the_known_ones(capsys: Captured) -> None:
    assert run(["rules", "32_vectors"]) == 1
    assert "31_vector" in capsys.readouterr().err


def test_chips_lists_what_there_is_and_the_default(capsys: Captured) -> None:
    out = printed(capsys, "chips")
    assert "910B2 (default)" in out
    assert "910B4" in out


def test_help_is_good(capsys: Captured) -> None:
    for arguments in ([], ["--help"], ["run", "--help"]):
        assert "Usage: tile-eg" in printed(capsys, *arguments)


def test_no_line_of_the_help_is_cut_short(capsys: Captured) -> None:
    assert "..." not in printed(capsys, "--help").replace("[ARGS]...", "")


def test_the_version_is_that_of_the_package(capsys: Captured) -> None:
    assert printed(capsys, "--version") == f"tile-eg {tile_eg.__version__}\n"


@pytest.mark.slow
def test_piped_output_is_plain_text() -> None:
    done = subprocess.run([sys.executable, "-m", "tile_eg", "chips"], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_help_does_not_load_the_solver_or_the_egraph() -> None:
    heavy = "[m for m in ('egglog', 'ortools', 'numpy') if m in sys.modules]"
    code = f"import sys\nfrom tile_eg.cli.app import run\nrun(['--help'])\nprint({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_a_file_whose_sizes_are_numbers_loads_nothing_of_texts_for_all_sizes() -> None:
    look = "sources.for_all_sizes(Path('examples/gemm.tile'), {}, None, search_options(), {})"
    imports = "import sys\nfrom pathlib import Path\nfrom tile_eg.cli import sources\nfrom tile_eg.search import search_options"
    code = f"{imports}\n{look}\nprint('tile_eg.search.one_text' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=EXAMPLES.parent)
    assert done.stdout == "False\n"
