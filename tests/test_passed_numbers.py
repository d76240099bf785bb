"""Floats that each call passes are arguments of one compiled kernel, where they only enter arithmetic; else it has them in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.cli.app import run
from tile_eg.frontend.of_calls import OfCall
from tile_eg.frontend.text import load_text
from tile_eg.ir.passed import NeedsNumber, computed, passed
from tile_eg.ir.program.parser import parse_program
from tile_eg.jit.process_cache import cache

STEP = """kernel step[{M}, N=64](W: {of}[M, N], lr: f32, G: {of}[M, N]) -> Y: {of}[M, N] {{
  grid b = ceildiv(M, 16)
  shared w: {of}[16, N], g: {of}[16, N]
  w = W[b*16, 0]
  g = G[b*16, 0]
  Y[b*16, 0] = {value}
}}
"""
W, G = np.random.default_rng(0).uniform(-1, 1, (2, 32, 64)).astype(np.float32)


def step_file(folder: Path, value: str, of: str = "f32", size: str = "M=32") -> Path:
    path = folder / "step.tile"
    path.write_text(STEP.format(M=size, of=of, value=value))
    return path


@tile_eg.jit(effort="none")
@T.prim_func
def sgd(W: T.Tensor((32, 64), "float32"), G: T.Tensor((32, 64), "float32"), lr: T.float32, decay: T.float32):
    with T.Kernel(2) as b:
        w, g = T.alloc_shared((16, 64), "float32"), T.alloc_shared((16, 64), "float32")
        T.copy(W[b * 16, 0], w)
        T.copy(G[b * 16, 0], g)
        for i, j in T.Parallel(16, 64):
            w[i, j] = w[i, j] * (1 - lr * decay) - lr * g[i, j]
        T.copy(w, W[b * 16, 0])


@tile_eg.jit(effort="none")
@T.prim_func
def branching(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32"), a: T.float32, b: T.float32):
    with T.Kernel(1):
        x = T.alloc_shared((16, 64), "float32")
        T.copy(X, x)
        if a > 0:
            T.tile.add(x, x, a)
        T.tile.mul(x, x, b)
        T.copy(x, Y)


@tile_eg.jit(effort="none")
def softened(X: T.Tensor((16, 64), "float32"), t: T.float32):
    return T.softmax(X / t + (1 - t))


@tile_eg.jit(effort="none")
def launched(W, G, lr, scale=1.0, twice=False):
    M, N = T.const("M, N")
    W: T.Tensor[[M, N], T.float32]
    G: T.Tensor[[M, N], T.float32]
    Y = T.empty((M, N), T.float32)
    rates = [lr * scale, 2 * lr * scale]
    if twice:
        lr = lr * 2
    with T.Kernel(M // 16) as b:
        w, g = T.alloc_shared((16, N), "float32"), T.alloc_shared((16, N), "float32")
        T.copy(W[b * 16, 0], w)
        T.copy(G[b * 16, 0], g)
        for i, j in T.Parallel(16, N):
            w[i, j] = w[i, j] - rates[1] * g[i, j] + lr
        T.copy(w, Y[b * 16, 0])
    return Y


def compiled(call: Callable[[], Any]) -> int:
    """How many kernels a call compiles."""
    before = len(cache.entries) + len(cache.restored)
    call()
    return len(cache.entries) + len(cache.restored) - before


@pytest.mark.slow
def test_one_compiled_kernel_serves_all_rates() -> None:
    found = []
    for lr, decay in ((0.5, 0.25), (-3.0, 0.0), (1e-3, 0.1)):
        w = W.copy()
        found.append(compiled(lambda w=w, lr=lr, decay=decay: sgd(w, G, lr, decay)))  # type: ignore[misc]
        rate, less = np.float32(lr), np.float32(decay)
        np.testing.assert_array_equal(w, W * (1 - rate * less) - rate * G)
    assert found[1:] == [0, 0]


def test_the_text_takes_them_behind_the_tensors() -> None:
    source = sgd.get_kernel_source()
    assert "GM_ADDR workspace, float lr, float decay)" in source and "(1.0f - (lr * decay))" in source
    assert "void* workspace, float lr, float decay)" in sgd.get_host_source()


@pytest.mark.slow
def test_a_number_that_decides_a_branch_is_compiled_in_and_others_are_not() -> None:
    x, y = W[:16].copy(), np.zeros((16, 64), np.float32)
    for a, b, count in ((0.5, 2.0, None), (0.5, 3.0, 0), (-1.0, 3.0, None)):
        found = compiled(lambda a=a, b=b: branching(x, y, a, b))  # type: ignore[misc]
        np.testing.assert_allclose(y, (x + max(a, 0)) * b, rtol=1e-6)
        assert count is None or found == count


@pytest.mark.slow
def test_plain_floats_of_a_function_that_launches_blocks_are_arguments_too() -> None:
    for lr, scale, count in ((0.5, 1.0, None), (0.25, 3.0, 0), (-1.0, 0.5, 0)):
        found = []
        made = compiled(lambda lr=lr, scale=scale, found=found: found.append(launched(W, G, lr, scale)))  # type: ignore[misc]
        np.testing.assert_allclose(found[0], W - np.float32(2 * lr * scale) * G + np.float32(lr), rtol=1e-5, atol=1e-6)
        assert count is None or made == count


@pytest.mark.slow
def test_a_float_that_is_another_one_at_the_launch_is_compiled_in() -> None:
    for lr in (0.5, 0.25):
        np.testing.assert_allclose(launched(W, G, lr, 1.0, True), W - np.float32(2 * lr) * (G - 1), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_functions_of_whole_tensors_have_them_too() -> None:
    softened(W[:16].copy(), 0.5)
    assert compiled(lambda: softened(W[:16].copy(), 2.0)) == 0
    wanted = np.exp(W[:16] / 2 - 1)
    np.testing.assert_allclose(softened(W[:16].copy(), 2.0), wanted / wanted.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("w - lr*g", lambda w, g, lr: w - lr * g),
        ("lr - w", lambda w, g, lr: lr - w),
        ("max(w, lr) + min(-lr, g)", lambda w, g, lr: np.maximum(w, lr) + np.minimum(-lr, g)),
        ("w / lr + lr / (g + 3)", lambda w, g, lr: w / lr + lr / (g + 3)),
        ("select(w > lr, w, lr)", lambda w, g, lr: np.where(w > lr, w, lr)),
        ("exp(lr) * w + sqrt(lr + 1)", lambda w, g, lr: np.exp(lr) * w + np.sqrt(lr + 1)),
        ("w + g * (lr * 3 - 1)", lambda w, g, lr: w + g * (lr * 3 - 1)),
    ],
)
def test_what_is_computed_with_them(tmp_path: Path, value: str, wanted: Callable[..., np.ndarray]) -> None:
    kernel = tile_eg.load(step_file(tmp_path, value), effort="none")
    for lr in (0.5, 0.1):
        np.testing.assert_allclose(kernel(W, lr, G), wanted(W, G, np.float32(lr)), rtol=2e-6, atol=1e-6)
    assert set(kernel.of_any.known.values()) == {("lr",)}


@pytest.mark.slow
def test_beside_f16_a_number_is_rounded_to_it(tmp_path: Path) -> None:
    kernel = tile_eg.load(step_file(tmp_path, "w * lr", "f16"), effort="none")
    w, g = W.astype(np.float16), G.astype(np.float16)
    for lr in (0.1, 3.0):
        np.testing.assert_array_equal(kernel(w, lr, g), w * np.float16(lr))


@pytest.mark.slow
def test_one_text_serves_all_sizes_and_all_numbers(tmp_path: Path) -> None:
    kernel = tile_eg.load(step_file(tmp_path, "w - lr*g", size="M: dyn"), effort="none")
    for rows, lr in ((32, 0.5), (7, 0.25), (1, -2.0)):
        np.testing.assert_array_equal(kernel(W[:rows].copy(), lr, G[:rows].copy()), W[:rows] - np.float32(lr) * G[:rows])
    texts = {str(t.source) for one in kernel.texts.made.values() for t in one.made.values()}
    assert len(texts) == 1 and "int32_t M, float lr)" in texts.pop()


@pytest.mark.slow
def test_the_command_line_emits_one_text_and_passes_a_number_to_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(step_file(tmp_path, "w - lr*g"))
    assert run(["emit", file]) == 0
    assert "GM_ADDR workspace, float lr)" in capsys.readouterr().out
    assert run(["emit", file, "--spec"]) == 0
    assert 'name = "lr"\nvalue = 0.5' in capsys.readouterr().out
    for kind, name in (((), "k.asc"), (("--spec",), "k.toml"), (("--program",), "k.program")):
        assert run(["emit", file, *kind, "-o", str(tmp_path / name)]) == 0
    assert run(["simulate", str(tmp_path / "k.asc"), "--args", str(tmp_path / "k.toml")]) == 0
    assert run(["run", str(tmp_path / "k.program")]) == 0
    assert run(["run", file, "--set", "lr=0.1"]) == 0
    assert run(["run", file]) == 1
    assert "give it: --set lr=0.5" in capsys.readouterr().err


def test_a_program_with_numbers_is_read_back() -> None:
    from tile_eg.search.compiler import lower

    kernel = load_text(STEP.format(M="M=32", of="f32", value="w - lr*g")).instantiate({"lr": passed("lr")})
    program = lower(kernel, "910B2").program
    assert program.numbers == ("lr",) and parse_program(str(program)) == program


def test_nobody_is_told_what_such_a_number_is() -> None:
    x = OfCall(passed("lr"))
    questions = [bool, float, int, math.exp, abs, lambda v: v > 0, lambda v: v == 0.5, lambda v: [1, 2][v]]
    for asked in questions:
        with pytest.raises((NeedsNumber, TypeError)):
            asked(x)
    assert str((1 - x * 2).value) == "(1.0 - (lr * 2.0))"


def test_two_numbers_are_the_same_where_they_are_computed_alike() -> None:
    assert computed("mul", passed("a"), 2.0) == computed("mul", passed("a"), 2.0) != computed("mul", passed("b"), 2.0)
    with pytest.raises(NeedsNumber):
        _ = OfCall(passed("a")).written != 0.0


def test_what_is_computed_of_numbers_is_rounded_as_floats_are() -> None:
    less = computed("sub", 1.0, passed("lr"))
    assert less.at({"lr": 0.9999}) == float(np.float32(1) - np.float32(0.9999)) and less.__neg__().__neg__() is less


@pytest.mark.slow
def test_rows_of_a_bench_and_of_a_dataset_are_told_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(step_file(tmp_path, "w - lr*g"))
    assert run(["bench", file, "--device", "simulator", "--set", "lr=0.5", "--effort", "none"]) == 0
    assert "lr0.5" in capsys.readouterr().out
    out = tmp_path / "rows"
    assert run(["dataset", file, "-o", str(out), "-n", "2", "--format", "jsonl", "--workers", "1", "--set", "lr=0.5,0.25"]) == 0
    assert "lr=0.25" in (out / "rows.jsonl").read_text()
    assert run(["dataset", file, "-o", str(out), "--set", "N=0.5", "--set", "lr=1"]) == 1
    assert "a size is a whole number" in capsys.readouterr().err
