"""A kernel for all sizes is compiled once: another process takes it from the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg import disk_cache
from tile_eg.cli.app import run
from tile_eg.ir.plain import from_plain, to_plain
from tile_eg.ops.types import DTYPES, I4
from tile_eg.search import one_text

TEXT = """kernel twice[M: dyn](A: f32[M, 64]) -> C: f32[M, 64] {
  grid b = ceildiv(M, 16)
  shared x: f32[16, 64]
  x = A[b*16, 0]
  C[b*16, 0] = x + x
}
"""


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The cache is on, in a folder of this test's own; the list gets the sizes that a text for all sizes is priced at."""
    monkeypatch.delenv("TILE_EG_NO_CACHE")
    monkeypatch.setattr(disk_cache, "cache_directory", lambda: tmp_path / "cache")
    done: list[Any] = []
    compiled = one_text.lower_for_any_size

    def lower(build: Any, sizes: Any, chip: str, options: Any, *multiples: Any) -> Any:
        done.extend([] if multiples else [sizes])
        return compiled(build, sizes, chip, options, *multiples)

    monkeypatch.setattr(one_text, "lower_for_any_size", lower)
    return done


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "twice.tile").write_text(TEXT)
    return tmp_path / "twice.tile"


def kernel(plus: float, small: int = 0) -> Any:
    """A kernel in Python, which is another one below `small`."""
    M = T.symbolic("M")

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def added(A: T.Tensor((M, 64), "float32"), C: T.Tensor((M, 64), "float32")):
        with T.Kernel(T.ceildiv(M, 16)) as bx:
            x = T.alloc_shared((16, 64), "float32")
            T.copy(A[bx * 16, 0], x)
            for i, j in T.Parallel(16, 64):
                x[i, j] = x[i, j] + plus
            T.copy(x, C[bx * 16, 0])

    return added


def rows(m: int) -> np.ndarray:
    return np.arange(m * 64, dtype=np.float32).reshape(m, 64)


@pytest.mark.slow
def test_a_kernel_in_tile_is_compiled_for_all_sizes_once(file: Path, compilations: list[Any]) -> None:
    for m in (3, 40):
        np.testing.assert_array_equal(tile_eg.load(file)(rows(m)), rows(m) * 2)
    assert len(compilations) == 1


@pytest.mark.slow
def test_a_text_that_was_changed_is_compiled_anew(file: Path, compilations: list[Any]) -> None:
    tile_eg.load(file)(rows(3))
    file.write_text(TEXT.replace("x + x", "x + 1"))
    np.testing.assert_array_equal(tile_eg.load(file)(rows(3)), rows(3) + 1)
    assert len(compilations) == 2


@pytest.mark.slow
def test_a_kernel_in_python_is_compiled_for_all_sizes_once(compilations: list[Any]) -> None:
    for m in (3, 40):
        np.testing.assert_array_equal(kernel(2.0)(rows(m)), rows(m) + 2)
    assert len(compilations) == 1


@pytest.mark.slow
def test_a_kernel_in_python_that_is_another_one_is_compiled_anew(compilations: list[Any]) -> None:
    kernel(2.0)(rows(3))
    np.testing.assert_array_equal(kernel(3.0)(rows(3)), rows(3) + 3)
    assert len(compilations) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["source", "host", "spec"])
def test_the_texts_are_the_same_from_the_cache(
    name: str, file: Path, compilations: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def emitted() -> str:
        assert run(["emit", str(file), *([f"--{name}"] if name != "source" else [])]) == 0
        return capsys.readouterr().out

    assert emitted() == emitted()
    assert len(compilations) == 1


@pytest.mark.slow
def test_a_cache_that_is_not_asked_compiles(file: Path, compilations: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run(["emit", str(file), "--no-cache"]) == 0
    assert len(compilations) == 2


@pytest.mark.slow
def test_sizes_that_are_priced_have_a_text_of_their_own(file: Path, compilations: list[Any]) -> None:
    for point in ("16", "2048", "16"):
        assert run(["emit", str(file), "--at", f"M={point}"]) == 0
    assert len(compilations) == 2


@pytest.mark.slow
def test_what_one_text_cannot_serve_is_kept_too(tmp_path: Path, compilations: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.tile"
    file.write_text(TEXT.replace("16", "M").replace("[M, 64]", "[M, 64]"))
    looked: list[Any] = []
    found: Callable[..., Any] = one_text.which_are_open
    monkeypatch.setattr(one_text, "which_are_open", lambda *args: looked.append(args) or found(*args))
    for _ in range(2):
        np.testing.assert_array_equal(tile_eg.load(file)(rows(3)), rows(3) * 2)
    assert len(looked) == 1
    assert not compilations


@pytest.mark.slow
def test_a_program_is_itself_again_from_plain_values(file: Path) -> None:
    program = tile_eg.load(file).for_all_sizes().program
    again = from_plain(to_plain(program))
    assert again == program
    assert to_plain(again) == to_plain(program)


def test_what_has_no_plain_form_is_refused() -> None:
    with pytest.raises(TypeError, match="a function has no plain form"):
        to_plain((1, rows))


def test_an_element_type_that_is_read_is_the_one_that_is_asked_for() -> None:
    assert all(from_plain(to_plain(t)) is t for t in (*DTYPES.values(), I4))
