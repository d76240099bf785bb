"""Words of other languages in `.tile` text: the message says what to write, and that is there."""

from __future__ import annotations

import re

import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.expressions import FUNCTIONS, INSTEAD
from tile_eg.search.compiler import check_kernel, lower

ROWS = """kernel k[M=32, N=64](A: f32[M, N]) -> C: f32[M] {{
  grid b = 2
  shared x: f32[16, N], s: f32[16], c: f32[16, N]
  x = A[b*16, 0]
  {line}
  C[b*16] = s
}}
"""


@pytest.mark.parametrize("word", INSTEAD)
def test_a_way_out_names_functions_that_there_are(word: str) -> None:
    named = set(re.findall(r"([a-z]\w*)\(", INSTEAD[word]))
    assert named <= {*FUNCTIONS, "serial"} and word not in FUNCTIONS


@pytest.mark.parametrize(("word", "way"), [("rowmean", "rowsum(x) / n"), ("lerp", "x + (y - x) * t")])
def test_a_word_that_is_not_there_is_told_with_what_is(word: str, way: str) -> None:
    with pytest.raises(TileError, match=f"unknown function `{word}`") as error:
        load_text(ROWS.format(line=f"s = {word}(x)")).instantiate()
    assert error.value.help == f"write {way}"


def test_a_word_that_is_not_there_is_told_before_its_keywords() -> None:
    with pytest.raises(TileError, match="unknown function `mean`") as error:
        load_text(ROWS.format(line="s = mean(x, axis=1)")).instantiate()
    assert error.value.help == "write rowsum(x) / n"


def test_a_number_that_is_not_whole_is_no_parameter() -> None:
    with pytest.raises(TileError, match="a kernel's parameters are whole numbers, not 0.125") as error:
        load_text("kernel k[N=64, s=0.125](A: f32[N]) -> C: f32[N] { C = A * s }").instantiate()
    assert error.value.help == "a constant stands before the kernel: let s = 0.125"
    load_text("let s = 0.125\nkernel k[N=64](A: f32[N]) -> C: f32[N] { C = A * s }").instantiate()


def test_a_position_that_is_too_large_is_told_as_that() -> None:
    line = "parallel (i, j) in (16, N) {{ c[i, j] = x[i, j] + (j // 3) * {} }}\n  s = rowsum(c)"
    with pytest.raises(TileError, match="numbers up to 105000021 are too large here") as error:
        lower(load_text(ROWS.format(line=line.format("5000001"))).instantiate())
    assert "f32(i // 3) * 5e6" in error.value.help
    load_text(ROWS.format(line=line.format("5000").replace("(j // 3)", "f32(j // 3)"))).instantiate()


@pytest.mark.parametrize(("dtype", "rounds"), [("i32", ", which rounds from 2^24 on"), ("i16", "")])
def test_a_word_of_floats_tells_the_cast_that_whole_numbers_need(dtype: str, rounds: str) -> None:
    text = f"kernel k(A: {dtype}[16, 64]) -> C: i32[16] {{ shared x: {dtype}[16, 64] x = A[0, 0] C[0] = argmax(x) }}"
    with pytest.raises(TileError, match="`argmax` works on f16, bf16, f32") as error:
        check_kernel(load_text(text).instantiate())
    assert error.value.help == f"cast it first: f32(x){rounds}"
    check_kernel(load_text(text.replace("argmax(x)", "argmax(f32(x))")).instantiate())
