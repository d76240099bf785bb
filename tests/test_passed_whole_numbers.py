"""Whole numbers that each call passes are arguments of one compiled kernel, where they only enter indices and arithmetic."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.test_passed_numbers import compiled
from tile_eg.cli.app import run
from tile_eg.cli.numbers import apart
from tile_eg.cli.sources import read
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.passed import MOST_WHOLE, passed_whole
from tile_eg.ir.program.parser import parse_program
from tile_eg.ir.reference import run_kernel

ROWS, COLS = np.arange(32)[:, None], np.arange(64)
X = np.random.default_rng(0).uniform(-20, 20, (64, 64)).astype(np.float32)
STEP = """kernel step[M{size}, N=64](X: {of}[M, N], n: i32) -> Y: {of}[M, N] {{
  grid b = ceildiv(M, 16)
  shared x: {of}[16, N]
  x = X[b*16, 0]
  parallel (i, j) in (16, N) {{
    x[i, j] = {value}
  }}
  Y[b*16, 0] = x
}}
"""
MODULE = """import tile_eg, tile_eg.language as T
@tile_eg.jit(effort="none")
@T.prim_func
def step(X: T.Tensor((64, 128), "float32"), Y: T.Tensor((16, 128), "float32"), pos: T.int32, s: T.float32):
    with T.Kernel(1) as b:
        x = T.alloc_shared((16, 128), "float32")
        T.copy(X[pos, 0], x)
        for i, j in T.Parallel(16, 128):
            x[i, j] = x[i, j] * s
        T.copy(x, Y)
"""


BESIDE = """kernel beside[M{size}](X: f32[M, 64], n: i32, m: i32) -> Y: f32[M, 64] {{
  grid b = ceildiv(M, 16)
  shared x: f32[16, 64], w: f32[16, 64]
  x = X[b*16, 0]
  {loaded}
  Y[b*16, 0] = x + w
}}
"""
STEP_OF_PYTHON = """@tile_eg.jit(effort="none")
@T.prim_func
def step(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((16, 64), "float32"), n: T.int32):
    with T.Kernel(1):
        x = T.alloc_shared((16, 64), "float32")
        T.copy(X[0, 0], x)
        for i, j in T.Parallel(16, 64):
            x[i, j] = x[i, j] + (VALUE)
        T.copy(x, Y)
"""
PICKED = """kernel picked(X: f32[64, 64], I: i32[8], n: i32) -> Y: f32[16, 64] {
  grid b = 1
  shared x: f32[16, 64]
  x = X[I[n], 0]
  Y[0, 0] = x
}
"""


def step_file(folder: Path, value: str, of: str = "f32", size: str = "=32") -> Path:
    path = folder / "step.tile"
    path.write_text(STEP.format(size=size, of=of, value=value))
    return path


@tile_eg.jit(effort="none")
@T.prim_func
def moved(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32"), source: T.int32, target: T.int32):
    with T.Kernel(2) as b:
        x = T.alloc_shared((8, 64), "float32")
        T.copy(X[source + b * 8, 0], x)
        T.copy(x, Y[target + b * 8, 0])


@tile_eg.jit(effort="none")
@T.prim_func
def widened(X: T.Tensor((32, 64), "float32"), Y: T.Tensor((32, 64), "float32"), n: T.int32):
    with T.Kernel(2) as b:
        x = T.alloc_shared((16, n * 32), "float32")
        T.copy(X[b * 16, 0], x)
        for i, j in T.Parallel(16, n * 32):
            x[i, j] = x[i, j] + n
        T.copy(x, Y[b * 16, 0])


@tile_eg.jit(effort="none")
@T.prim_func
def repeated(X: T.Tensor((32, 64), "float32"), Y: T.Tensor((32, 64), "float32"), n: T.int32):
    with T.Kernel(2) as b:
        x = T.alloc_shared((16, 64), "float32")
        T.copy(X[b * 16, 0], x)
        for k in T.serial(n):
            for i, j in T.Parallel(16, 64):
                x[i, j] = x[i, j] + k
        T.copy(x, Y[b * 16, 0])


@tile_eg.jit(effort="none")
@T.prim_func
def branching(X: T.Tensor((32, 64), "float32"), Y: T.Tensor((32, 64), "float32"), n: T.int32):
    with T.Kernel(2) as b:
        x = T.alloc_shared((16, 64), "float32")
        T.copy(X[b * 16, 0], x)
        if n:
            T.tile.add(x, x, 1.0)
        T.copy(x, Y[b * 16, 0])


@tile_eg.jit(effort="none")
@T.prim_func
def shadowed(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((16, 64), "float32"), k: T.int32, r: T.float32):
    with T.Kernel(1):
        x, y = T.alloc_shared((16, 64), "float32"), T.alloc_shared((16, 64), "float32")
        more, rate = k + 1, r * 2.0
        T.clear(y)
        for k in T.serial(2):
            for r in T.serial(2):
                T.copy(X[k * 32 + r * 16, 0], x)
                for i, j in T.Parallel(16, 64):
                    y[i, j] = y[i, j] + x[i, j] * more + rate
        T.copy(y, Y)


@tile_eg.jit(effort="none")
@T.prim_func
def divided(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((16, 64), "float32"), n: T.int32, m: T.int32):
    with T.Kernel(1):
        x = T.alloc_shared((16, 64), "float32")
        T.copy(X[n // m, 0], x)
        T.copy(x, Y)


def dividing(value: str) -> Any:
    """A kernel that adds to each element what is divided."""
    name, text = f"<dividing {value}>", STEP_OF_PYTHON.replace("VALUE", value)
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    names: dict[str, Any] = {"T": T, "tile_eg": tile_eg}
    exec(compile(text, name, "exec"), names)
    return names["step"]


@pytest.mark.slow
def test_loops_may_have_the_names_of_numbers() -> None:
    y = np.zeros((16, 64), np.float32)
    for k, r in ((3, 0.5), (5, 0.25)):
        shadowed(X, y, k, r)
        np.testing.assert_allclose(y, X.reshape(4, 16, 64).sum(0) * (k + 1) + 8 * r, rtol=1e-4, atol=1e-3)
    assert {*shadowed.of_any.known.values()} == {("k", "r")}


@pytest.mark.slow
def test_a_place_in_loads_and_stores() -> None:
    for source, target, count in ((0, 5, None), (7, 0, 0), (48, 33, 0)):
        y = np.zeros_like(X)
        made = compiled(lambda s=source, t=target, y=y: moved(X, y, s, t))  # type: ignore[misc]
        wanted = np.zeros_like(X)
        wanted[target : target + 16] = X[source : source + 16]
        np.testing.assert_array_equal(y, wanted)
        assert count is None or made == count


def test_a_place_outside_is_told_with_its_value() -> None:
    with pytest.raises(TileError, match="takes the value 68, dimension 0 has 64"):
        moved(X, np.zeros_like(X), 60, 0)


def test_the_text_takes_them_behind_the_tensors_and_its_launch_refuses_others() -> None:
    assert "GM_ADDR workspace, int32_t source, int32_t target)" in moved.get_kernel_source()
    assert f"if (source < 0 || source > {MOST_WHOLE}) return ACL_ERROR_INVALID_PARAM;" in moved.get_host_source()


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("of", ["f32", "f16", "i32"])
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("x[i, j] + n", lambda x, n: x + x.dtype.type(n)),
        ("n - x[i, j]", lambda x, n: x.dtype.type(n) - x),
        ("x[i, j] * (n // 3 + 1) - n % 5", lambda x, n: x * x.dtype.type(n // 3 + 1) - x.dtype.type(n % 5)),
        ("max(x[i, j], n)", lambda x, n: np.maximum(x, x.dtype.type(n))),
        ("select(b*16 + i < n, x[i, j], -1)", lambda x, n: np.where(n > ROWS, x, x.dtype.type(-1))),
        ("select(j >= n and j < n + 8, x[i, j], -1)", lambda x, n: np.where((n <= COLS) & (n + 8 > COLS), x, x.dtype.type(-1))),
        ("select(j == n, x[i, j], -1)", lambda x, n: np.where(n == COLS, x, x.dtype.type(-1))),
    ],
)
def test_what_is_done_with_them(tmp_path: Path, value: str, wanted: Callable[..., np.ndarray], of: str) -> None:
    kernel = tile_eg.load(step_file(tmp_path, value, of), effort="none")
    x = X[:32].astype({"f32": np.float32, "f16": np.float16, "i32": np.int32}[of])
    for n in (5, 0, 33, 2049, -3):
        np.testing.assert_array_equal(kernel(x, n), wanted(x, n))
    assert {*kernel.of_any.known.values()} == {("n",), ()}


@pytest.mark.slow
@pytest.mark.parametrize("of", ["i32", "u8"])
def test_whole_elements_are_compared_with_them(tmp_path: Path, of: str) -> None:
    kernel = tile_eg.load(step_file(tmp_path, "select(x[i, j] < n and j > n, x[i, j], 1)", of), effort="none")
    x = np.abs(X[:32]).astype({"i32": np.int32, "u8": np.uint8}[of])
    for n in (5, 0):
        np.testing.assert_array_equal(kernel(x, n), np.where((x < n) & (n < COLS), x, x.dtype.type(1)))


@pytest.mark.slow
@pytest.mark.parametrize("size", ["=40", ": dyn"])
@pytest.mark.parametrize("place", ["n", "n + m"])
def test_a_padded_window_may_begin_beyond_the_end(tmp_path: Path, size: str, place: str) -> None:
    path = tmp_path / "beside.tile"
    path.write_text(BESIDE.format(size=size, loaded=f"w = pad(X[{place}, 0], 0)"))
    kernel = tile_eg.load(path, effort="none")
    for n, m in ((3, 4), (39, 0), (50, 50)):
        beside = np.zeros((16, 64), np.float32)
        there = X[:40][n + m * ("m" in place) :][:16]
        beside[: len(there)] = there
        np.testing.assert_array_equal(kernel(X[:40], n, m), X[:40] + np.tile(beside, (3, 1))[:40])


@pytest.mark.slow
def test_a_row_at_a_number_is_read_at_all_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "beside.tile"
    path.write_text(BESIDE.format(size=": dyn", loaded="parallel (i, j) in (16, 64) { w[i, j] = X[n, j] * m }"))
    assert run(["emit", str(path)]) == 0
    assert "int32_t M, int32_t n, int32_t m)" in capsys.readouterr().out


@pytest.mark.slow
def test_an_index_that_is_read_outside_is_told(tmp_path: Path) -> None:
    path = tmp_path / "picked.tile"
    path.write_text(PICKED)
    kernel = tile_eg.load(path, effort="none")
    places = np.arange(8, dtype=np.int32)
    np.testing.assert_array_equal(kernel(X, places, 5), X[5:21])
    for n in (8, -1):
        with pytest.raises(TileError, match=f"an index is read outside of `I`: {n}, dimension 0 has 8 elements"):
            kernel(X, places, n)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["7 // (n - 1)", "i % (n - 1)", "T.floordiv(i, n - 1)"])
def test_what_they_divide_is_never_divided_by_zero(value: str) -> None:
    kernel = dividing(value)
    for n in (3, 5):
        y = np.zeros((16, 64), np.float32)
        kernel(X, y, n)
        wanted = {"7": 7 // (n - 1), "i": ROWS[:16] % (n - 1), "T": ROWS[:16] // (n - 1)}[value[0]]
        np.testing.assert_allclose(y, X[:16] + wanted, rtol=1e-6)
    with pytest.raises(TileError):
        kernel(X, np.zeros((16, 64), np.float32), 1)


@pytest.mark.parametrize("value", ["i % -2", "i // 0"])
def test_an_index_is_divided_by_numbers_above_zero(value: str) -> None:
    with pytest.raises(TileError, match="an index is divided by a number above 0, not by"):
        dividing(value)(X, np.zeros((16, 64), np.float32), 1)


@pytest.mark.slow
def test_one_may_be_compiled_in_where_another_is_passed() -> None:
    for n, m in ((9, 2), (8, 1)):
        y = np.zeros((16, 64), np.float32)
        divided(X, y, n, m)
        np.testing.assert_array_equal(y, X[n // m : n // m + 16])


@pytest.mark.slow
def test_beside_a_float_they_are_floats(tmp_path: Path) -> None:
    kernel = tile_eg.load(step_file(tmp_path, "x[i, j] + n * 0.5 - 1 / (n + 1)"), effort="none")
    for n in (5, 0):
        np.testing.assert_allclose(kernel(X[:32], n), X[:32] + n * 0.5 - 1 / (n + 1), rtol=1e-6, atol=1e-6)
    assert {*kernel.of_any.known.values()} == {("n",)}


@pytest.mark.slow
def test_a_position_that_begins_at_one(tmp_path: Path) -> None:
    kernel = tile_eg.load(step_file(tmp_path, "x[i, j] * f32(n + j)"), effort="none")
    for n in (3, MOST_WHOLE):
        np.testing.assert_array_equal(kernel(X[:32], n), X[:32] * (n + COLS).astype(np.float32))


@pytest.mark.slow
def test_numbers_that_are_negative_or_large_are_compiled_in(tmp_path: Path) -> None:
    kernel = tile_eg.load(step_file(tmp_path, "x[i, j] + n"), effort="none")
    for n in (MOST_WHOLE, MOST_WHOLE + 1, -1):
        np.testing.assert_array_equal(kernel(X[:32], n), X[:32] + np.float32(n))
    assert [*kernel.of_any.known.values()] == [("n",), (), ()]


@pytest.mark.slow
def test_one_text_serves_all_sizes_and_all_numbers(tmp_path: Path) -> None:
    kernel = tile_eg.load(step_file(tmp_path, "select(b*16 + i < n, x[i, j], x[i, j] + n)", size=": dyn"), effort="none")
    for rows, n in ((32, 5), (7, 0), (1, 100)):
        x = X[:rows].copy()
        np.testing.assert_array_equal(kernel(x, n), np.where(np.arange(rows)[:, None] < n, x, x + np.float32(n)))
    texts = {str(t.source) for one in kernel.texts.made.values() for t in one.made.values()}
    assert len(texts) == 1 and "int32_t M, int32_t n)" in texts.pop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "wanted", "numbers"),
    [
        (widened, lambda x, n: np.where(n * 32 > COLS, x + np.float32(n), 0), (2, 1)),
        (repeated, lambda x, n: x + np.float32(sum(range(n))), (2, 0)),
        (branching, lambda x, n: x + bool(n), (2, 0)),
    ],
)
def test_what_decides_the_kernel_is_compiled_in(kernel: Any, wanted: Callable[..., np.ndarray], numbers: tuple[int, ...]) -> None:
    for n in numbers:
        y = np.zeros((32, 64), np.float32)
        kernel(X[:32], y, n)
        np.testing.assert_allclose(y, wanted(X[:32], n), rtol=1e-6)
    assert {*kernel.of_any.known.values()} == {()}


@pytest.mark.slow
def test_the_command_line_emits_one_text_and_passes_a_number_to_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(step_file(tmp_path, "x[i, j] + n"))
    assert run(["emit", file]) == 0
    assert "GM_ADDR workspace, int32_t n)" in capsys.readouterr().out
    assert run(["emit", file, "--spec"]) == 0
    assert 'name = "n"\nvalue = 1 ' in capsys.readouterr().out
    for kind, name in (((), "k.asc"), (("--spec",), "k.toml"), (("--program",), "k.program")):
        assert run(["emit", file, *kind, "-o", str(tmp_path / name)]) == 0
    assert run(["simulate", str(tmp_path / "k.asc"), "--args", str(tmp_path / "k.toml")]) == 0
    assert run(["run", str(tmp_path / "k.program")]) == 0
    for n in (7, 0, -2):
        assert run(["run", file, "--set", f"n={n}"]) == 0


def test_a_program_with_numbers_is_read_back() -> None:
    from tile_eg.search.compiler import lower

    kernel = load_text(STEP.format(size="=32", of="f32", value="x[i, j] + n")).instantiate({"n": passed_whole("n")})
    program = lower(kernel, "910B2").program
    assert program.numbers == ("n",) and program.wholes == ("n",) and parse_program(str(program)) == program


@pytest.mark.slow
def test_a_python_file_too_and_what_is_explained_is_what_is_emitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.py"
    file.write_text(MODULE)
    assert run(["emit", str(file)]) == 0
    assert "int32_t pos, float s)" in capsys.readouterr().out
    assert run(["explain", str(file)]) == 0
    assert "GmToUB" in capsys.readouterr().out
    assert run(["emit", str(file), "--set", "pos=3"]) == 0
    assert "GM_ADDR workspace, float s)" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("n", [40000, 70001])
def test_a_number_beside_half_is_one_whether_passed_or_compiled_in(n: int, tmp_path: Path) -> None:
    kernel = tile_eg.load(step_file(tmp_path, "x[i, j] / n", of="f16"), effort="none")
    x = np.full((32, 64), 30000, np.float16)
    want = np.full_like(x, 0.75 if n == 40000 else 0.0)  # 70001 is infinite in f16
    np.testing.assert_array_equal(kernel(x, n), want)
    np.testing.assert_array_equal(kernel.with_sizes(n=n)(x), want)


def test_run_draws_inputs_for_a_kernel_with_a_place_of_each_call(tmp_path: Path) -> None:
    text = "kernel w(X: f32[64, 64], n: i32) -> Y: f32[16, 64] {\n  shared x: f32[16, 64]\n  x = X[n, 0]\n  Y[0, 0] = x\n}\n"
    (tmp_path / "w.tile").write_text(text)
    assert run(["run", str(tmp_path / "w.tile"), "--set", "n=3"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "told"),
    [
        (48, "in the simulator: good"),
        (49, "where n moves a window beyond the end of its tensor the rest is cut off"),
        (64, "a window of `X` lies outside: 64, dimension 0 has 64 elements"),
    ],
)
def test_a_run_at_a_number_tells_what_it_cuts_off(tmp_path: Path, capsys: pytest.CaptureFixture[str], n: int, told: str) -> None:
    path = tmp_path / "moved.tile"
    body = "grid b = 1 shared x: f32[16, 64] x = X[n, 0] Y[0, 0] = x"
    path.write_text(f"kernel moved(X: f32[64, 64], n: i32) -> Y: f32[16, 64] {{ {body} }}")
    run(["run", str(path), "--set", f"n={n}", "--effort", "none"])
    said = capsys.readouterr()
    assert told in said.out + said.err


@pytest.mark.slow
def test_a_run_of_a_kernel_in_python_passes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "step.py"
    path.write_text(MODULE)
    given = {"pos": 5, "s": 0.25}
    at, numbers = apart(path, given, {})
    assert numbers == given
    assert at["pos"] == passed_whole("pos")
    assert run(["run", str(path), "--set", "pos=5,s=0.25"]) == 0
    assert "in the simulator: good" in capsys.readouterr().out


def test_a_square_is_computed_of_them(tmp_path: Path) -> None:
    path = tmp_path / "square.py"
    path.write_text(MODULE.replace("x[i, j] * s", "x[i, j] * pos ** 2 + i ** 2"))
    at, numbers = apart(path, {"pos": 3, "s": 1.0}, {})
    assert numbers["pos"] == 3
    kernel = read(path, {"pos": 3, "s": 1.0})
    y = run_kernel(kernel, {"X": np.tile(X, (1, 2))})["Y"]
    np.testing.assert_allclose(y, np.tile(X, (1, 2))[3:19] * 9 + ROWS[:16] ** 2, rtol=1e-5)
