"""Which tiles of a kernel's grid are compared with what it means: all of a small kernel, some of one that is long to compute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_sample import DOUBLED, FEW, SUMMED, file
from tests.extract.kernels import kernel
from tile_eg.cli import THREADS, compared
from tile_eg.cli.app import run
from tile_eg.cli.compared import FEWEST, compared_tiles
from tile_eg.ir.reference_work import elements_of_tile
from tile_eg.search import search_options
from tile_eg.search.compiler import lower
from tile_eg.simulator.sample import tiles_of

EXAMPLES = Path(__file__).parents[2] / "examples"
GEMM = (EXAMPLES / "gemm.tile").read_text()
Captured = pytest.CaptureFixture[str]


def program(text: str, **sizes: int):
    return lower(kernel(text, **sizes), search=search_options(without=("blocks-together", "side-by-side"))).program


@pytest.mark.slow
def test_all_tiles_of_a_small_kernel_are_compared() -> None:
    k = kernel(DOUBLED)
    assert compared_tiles(None, k, program(DOUBLED)) is None


@pytest.mark.slow
def test_of_a_large_one_the_corners_are_and_no_more_than_takes_seconds() -> None:
    k = kernel(GEMM, M=4096, N=4096, K=4096)
    tiles = compared_tiles(None, k, program(DOUBLED))
    assert tiles is not None and len(tiles) == FEWEST and {0, 511} < set(tiles)


@pytest.mark.slow
def test_a_user_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared, "ELEMENTS", 1)
    k, p = kernel(DOUBLED), program(DOUBLED)
    assert [len(compared_tiles(n, k, p) or range(15)) for n in (None, 0, 1, 6, 99)] == [FEWEST, 15, 1, 6, 15]


@pytest.mark.slow
def test_where_some_blocks_run_tiles_of_these_are_compared() -> None:
    assert compared_tiles(None, kernel(DOUBLED), program(DOUBLED), (0, 3, 14)) == (0, 3, 14)
    assert compared_tiles(1, kernel(DOUBLED), program(DOUBLED), (3, 14)) == (3,)


@pytest.mark.slow
def test_blocks_that_take_tiles_in_turn_have_their_tiles() -> None:
    made = program((EXAMPLES / "softmax.tile").read_text(), M=4096, N=512)
    total = 4096 // 32
    assert made.blocks < total
    parts = [tiles_of((block,), made, total) for block in range(made.blocks)]
    assert sorted(t for part in parts for t in part) == list(range(total)) and all(parts)


@pytest.mark.slow
def test_tiles_that_add_up_are_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared, "ELEMENTS", 1)
    assert compared_tiles(None, kernel(SUMMED), program(SUMMED)) is None


def test_deeper_and_wider_tiles_are_more_elements() -> None:
    tile, deeper, wider = (elements_of_tile(kernel(GEMM, K=k, BN=n)) for k, n in ((512, 128), (1024, 128), (512, 256)))
    assert 1.9 * tile < deeper < 2 * tile and tile < wider < deeper


@pytest.mark.slow
def test_a_run_says_what_it_compared(tmp_path: Path, capsys: Captured) -> None:
    assert run(["run", file(tmp_path, DOUBLED), "--compare", "5", *FEW]) == 0
    out = capsys.readouterr().out
    assert "ran 15 blocks as AIV_ONLY in the simulator: good" in out
    assert "compared in 5 of the 15 tiles of the grid, its corners and others (--compare 0: in all)" in out
    assert run(["run", file(tmp_path, DOUBLED), "--compare", "0", *FEW]) == 0
    assert "compared in" not in capsys.readouterr().out


@pytest.mark.slow
def test_what_is_wrong_in_a_compared_tile_is_found(tmp_path: Path, capsys: Captured) -> None:
    rules = tmp_path / "wrong.egg"
    wrong = '(rule ((= p (at v (UB s) r)) (= v (Un "exp" x))) ((union p (VUn "flat" "relu" (at x (UB s) r))))'
    rules.write_text(f'{wrong} :ruleset vec :name "wrong" :law implements)')
    text = DOUBLED.replace("a * 2", "exp(a)")
    command = ["run", file(tmp_path, text), "--compare", "2", "--rules", str(rules), "--json", *FEW]
    assert run(command) != 0
    told = json.loads(capsys.readouterr().out)["outputs"][0]
    assert told["wrong"] == 16 * 32 + 6 * 32  # the first tile, and the last one, which is short


@pytest.mark.slow
def test_numpy_multiplies_tiles_without_threads() -> None:
    code = "import sys; sys.argv = ['x']; from tile_eg.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass\n"
    code += f"import os; print(os.environ['{THREADS}'])"
    for given, seen in ((None, "1"), ("3", "3")):
        env = {k: v for k, v in os.environ.items() if k != THREADS} | ({THREADS: given} if given else {})
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.split()[-1] == seen


@pytest.mark.slow
def test_a_run_of_some_blocks_says_where_fewer_tiles_are_compared(tmp_path: Path, capsys: Captured) -> None:
    assert run(["run", file(tmp_path, DOUBLED), "--sample", "5", "--compare", "2", *FEW]) == 0
    assert "compared in 2 of the 5 tiles that ran (--compare 0: in all)" in capsys.readouterr().out
