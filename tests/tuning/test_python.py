"""`tile_eg.tune` and `@tile_eg.autotune` without configurations."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_eg
from tests.tuning.conftest import entry
from tile_eg import language as T
from tile_eg.errors import TileError, TileWarning
from tile_eg.tuning import session
from tile_eg.tuning.trial import Checked

pytestmark = pytest.mark.slow(but=1)


def held(folder: Path) -> tuple[Path, Any]:
    """The module's file in a folder, and its kernel."""
    file = Path(shutil.copy(Path(__file__).parent / "python_kernels.py", folder))
    return file, runpy.run_path(str(file))["scaled"]


@pytest.mark.slow
def test_a_call_tunes_once_and_the_next_process_uses_it(
    tmp_path: Path, all_right: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, scaled = held(tmp_path)
    x = np.ones((64, 32), np.float32)
    with pytest.warns(TileWarning, match="the one that tuning found"):
        assert (scaled(64, 32)(x) == 3).all()
    found = entry(file)
    assert found["open"] == ["B"] and found["tried"] == 4
    monkeypatch.setattr(session, "checked", lambda trial: pytest.fail("it was tuned again"))
    with pytest.warns(TileWarning):
        again = runpy.run_path(str(file))["scaled"](64, 32)
    assert again.get_tuner_result()["config"] == found["sizes"]
    assert again.get_tuner_result()["latency"] == pytest.approx(found["microseconds"] / 1000)


def test_tune_gives_what_was_tried_and_calls_use_it(kernel: Path, all_right: None) -> None:
    scaled = tile_eg.load(kernel)
    found = tile_eg.tune(scaled, M=64, N=96, budget=2)
    assert found.tried == 2 and found.best is not None and not found.interrupted
    assert found.best.microseconds == min(found.times.values())
    assert str(found).startswith("scaled(X: f32[64, 96], Y: f32[64, 96]) on 910B2")
    with pytest.warns(TileWarning, match="the one that tuning found"):
        scaled.with_sizes(M=64, N=96).planned()


def test_tune_takes_kernels_only(kernel: Path) -> None:
    with pytest.raises(TileError, match="tune takes a kernel, not a str"):
        tile_eg.tune("scaled.tile")
    with pytest.raises(TileError, match="has no sizes left: M"):
        tile_eg.tune(tile_eg.load(kernel).with_sizes(M=64), M=64)


def test_autotune_names_an_option_that_it_has_not() -> None:
    with pytest.raises(TileError, match="autotune has no option 'budgets'"):
        tile_eg.autotune(budgets=3)
    with pytest.raises(TileError, match="autotune has no option 'budget' here"):
        tile_eg.autotune(configs=[{"B": 16}], budget=3)


def test_a_kernel_that_has_its_sizes_from_each_call_is_tuned_at_some(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @tile_eg.autotune
    @tile_eg.jit(out_idx=[-1])
    def tripled():
        M = T.symbolic("M")

        @T.prim_func
        def tripled(X: T.Tensor((M, 32), "float32"), Y: T.Tensor((M, 32), "float32")):
            with T.Kernel(T.ceildiv(M, 16)) as b:
                x = T.alloc_shared((16, 32), "float32")
                T.copy(X[b * 16, 0], x)
                for i, j in T.Parallel(16, 32):
                    x[i, j] = x[i, j] * 3.0
                T.copy(x, Y[b * 16, 0])

        return tripled

    with pytest.raises(TileError, match="has its sizes from each call.*\n.*tile_eg.tune"):
        tripled()


def test_a_fault_of_a_worker_is_no_fact_about_a_candidate(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(trial: Any) -> Checked:
        raise RuntimeError("no room")

    monkeypatch.setattr(session, "checked", broken)
    found = tile_eg.tune(tile_eg.load(kernel), M=64, N=96, budget=1)
    assert found.records[0].wrong == "RuntimeError: no room"
    assert not Path(f"{kernel}.tuning.jsonl").exists()


def test_a_kernel_of_a_relative_path_is_tuned_beside_its_file(
    kernel: Path, all_right: None, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(kernel.parent)
    scaled = tile_eg.load(kernel.name)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    tile_eg.tune(scaled, budget=1)
    assert entry(kernel) and not list(elsewhere.iterdir())
    with pytest.warns(TileWarning, match="the one that tuning found"):
        scaled.with_sizes().planned()
