"""Printing a kernel and parsing the text gives the same kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.printer import number_text, print_kernel
from tile_eg.ir import index as ix
from tile_eg.ir.kernel import Kernel

from .kernels import kernels

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*.tile"))


def again(kernel: Kernel) -> Kernel:
    return load_text(print_kernel(kernel)).instantiate()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(kernels())
def test_a_printed_kernel_parses_to_itself(kernel):
    assert again(kernel) == kernel


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_prints_and_parses_to_itself(path):
    kernel = load_text(path.read_text()).instantiate()
    assert again(kernel) == kernel


def one_line(statement: str) -> str:
    """How a statement over a 4 x 8 tile `a`, a 4 x 4 tile `s` and a vector `v` prints."""
    text = f"kernel k(A: f32[4, 8]) -> C: f32[4, 8] {{ shared a: f32[4, 8], s: f32[4, 4], v: f32[4] a = A[0, 0] {statement} }}"
    return print_kernel(load_text(text).instantiate()).splitlines()[-2].strip()


@pytest.mark.parametrize("statement", [
    "a = A[0, 0]",
    "a = (a + a) * a",
    "a -= a - a",
    "a = a - a - a",
    "a = s @ a + a",
    "a = (s + s) @ a",
    "a = s.T @ a",
    "s = a @ a.T",
    "s = (a + a) @ (a * a).T",
    "a += s @ a",
    "a = -a",
    "a = 2 - -a",
    "a = max(a, -1)",
    "a = exp(a - v[:, None])",
    "a = rowmax(a)[:, None] * a",
    "v = rowsum(abs(a)) / 3",
    "C[0, 0] = a",
    "atomic C[0, 0] += a",
    "atomic C[0, 0] += a * 2",
    "a = f32(f16(a))",
])  # fmt: skip
def test_a_statement_prints_as_it_was_written(statement):
    assert one_line(statement).replace("2 - (-a)", "2 - -a") == statement


def test_an_index_prints_with_the_operators_of_the_language():
    i = ix.var("i")
    assert index_text(ix.minimum(i // 3 % 4 * 8 - 1, 7)) == "min((i // 3 % 4)*8 - 1, 7)"


NUMBERS = [(0.0, "0"), (-0.0, "-0.0"), (float("-inf"), "-inf"), (0.125, "0.125"), (1e30, "1e+30")]


@pytest.mark.parametrize(("value", "text"), NUMBERS)
def test_a_number_prints_so_that_it_reads_back(value, text):
    assert number_text(value) == text
