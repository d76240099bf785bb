"""Numbers among the parameters of a `.tile` kernel: each call passes them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tile_eg
from tile_eg.cli.app import run
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text

STEP = """kernel step[M: dyn, N = 64](X: f32[M, N], lr: f32, n: i32, G: f32[M, N]) -> Y: f32[M, N] {
  grid b = ceildiv(M, 8)
  shared x: f32[8, N], g: f32[8, N]
  x = X[b*8, 0]
  g = G[b*8, 0]
  x = x - lr * g + n
  Y[b*8, 0] = x
}
"""
X, G = np.random.default_rng(0).standard_normal((2, 13, 64)).astype(np.float32)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("numbers") / "step.tile"
    path.write_text(STEP)
    return str(path)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(("lr", "n"), [(0.5, -3), (0.0, 0), (-0.25, 2), (np.float32(2), np.int64(1))])
def test_each_call_passes_its_numbers_in_their_order(file: str, lr: float, n: int) -> None:
    kernel = tile_eg.load(file)
    for found in (kernel(X, lr, n, G), kernel(X, G=G, n=n, lr=lr)):
        np.testing.assert_allclose(found, X - np.float32(lr) * G + n, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_calls_with_the_same_arrays_and_other_numbers_differ(file: str) -> None:
    kernel = tile_eg.load(file)
    assert not np.array_equal(kernel(X, 0.5, 0, G), kernel(X, 0.25, 0, G))


@pytest.mark.slow
def test_a_number_of_numpys_is_told_from_another_one(file: str) -> None:
    kernel = tile_eg.load(file)
    for lr in (0.5, 0.5, np.float32(0.25), np.float32(0.5), np.float64(0.25), np.array(0.5)):
        np.testing.assert_allclose(kernel(X, lr, 0, G), X - np.float32(lr) * G, rtol=1e-6, atol=1e-6)


def test_expressions_of_whole_tensors_have_numbers_too() -> None:
    text = "kernel scaled[M = 16](X: f32[M, 64], s: f32) -> Y: f32[M, 64] { Y = X * s }"
    assert load_text(text).instantiate({"s": 0.5}) != load_text(text).instantiate({"s": 0.25})


@pytest.mark.parametrize(
    ("text", "sizes", "message"),
    [
        (STEP, {"M": 8, "n": 1}, "the number `lr` has no value"),
        (STEP, {"M": 8, "n": 1.5, "lr": 1.0}, "`n` is a whole number, not 1.5"),
        (STEP, {"M": 8, "n": 1, "lr": "x"}, "`lr` is a number, not 'x'"),
        (STEP, {"M": 8, "n": 1, "lr": "auto"}, "`lr` is a number, not 'auto'"),
        (STEP, {"M": 8, "n": 1, "lr": 1e40}, "`lr` is f32, which has no room for 1e+40"),
        (STEP, {"M": 8, "n": 2**31, "lr": 1.0}, "`n` is i32, which has no room for 2147483648"),
        (STEP.replace("lr: f32", "lr: f8e4m3"), None, "`lr: f8e4m3` is no number"),
        (STEP.replace("x = X[b*8, 0]", "x = lr[b*8, 0]"), {"M": 8, "n": 1, "lr": 1.0}, "`lr` is a number, not a buffer"),
    ],
    ids=["none", "not whole", "no number", "of the search", "too large", "too large a whole one", "another type", "as a tensor"],
)
def test_a_mistake_with_a_number_is_told(text: str, sizes: dict[str, Any] | None, message: str) -> None:
    with pytest.raises(TileError, match=re.escape(message)):
        load_text(text).instantiate(sizes)


@pytest.mark.slow
def test_the_command_line_sets_numbers(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", file, "--set", "lr=0.5", "--set", "n=-2", "--set", "M=8"]) == 0
    assert run(["run", file, "--set", "n=1", "--set", "M=8"]) == 1
    assert "give it: --set lr=0.5" in capsys.readouterr().err


def test_a_size_of_each_call_may_be_0_on_the_command_line(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", file, "--set", "lr=0.5", "--set", "n=1", "--set", "M=0"]) == 1
    assert "step has no blocks at lr=0.5, n=1, M=0" in capsys.readouterr().err
    assert run(["check", file, "--set", "N=0"]) == 1
    assert "--set N=0: a size is at least 1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sum_of_nothing_runs_from_the_command_line(tmp_path: Any) -> None:
    text = "kernel none[K: dyn](X: f32[8, K]) -> Y: f32[8] {\n grid b = 1\n fragment s: f32[8]\n s = 0\n"
    text += " for k in serial(ceildiv(K, 64)) { s = s + rowsum(X[0:8, k*64:k*64 + 64]) }\n Y[0] = s\n}\n"
    (tmp_path / "none.tile").write_text(text)
    assert run(["run", str(tmp_path / "none.tile"), "--set", "K=0"]) == 0
