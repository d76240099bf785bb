"""Texts that do not parse get a message that says what is wrong, at its place."""

from __future__ import annotations

import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.syntax_errors import FAULTS, whole_text

CASES = [(fault, text) for fault in FAULTS for text in fault.texts]


def error_of(text: str) -> TileError:
    with pytest.raises(TileError) as caught:
        load_text(text, "x.tile")
    return caught.value


@pytest.mark.slow(but=166)
@pytest.mark.parametrize(("fault", "text"), CASES, ids=[t for _, t in CASES])
def test_a_malformed_text_gets_its_own_message(fault, text):
    assert error_of(whole_text(text)).message == fault.message


@pytest.mark.parametrize(("line", "message"), [
    ("c += a @", "a value is missing here"),
    ("c = = a", "a value is missing here"),
    ("a = A[bx*BM, k*BK", "a closing bracket ] or a comma is missing"),
    ("c = exp(a", "a closing parenthesis ) or a comma is missing"),
    ("c == a", "an assignment is written with one ="),
    ("for k = serial(4) { }", "this loop has no range"),
    ("if k == 0: c = 0", "what a condition decides stands in braces"),
    ("shared d", "this buffer needs a type and a shape"),
    ("c", "this is not a statement"),
    ("let x", "`let` gives a value a name"),
    ("c[0][0] = a", "indices stand in one pair of brackets"),
])  # fmt: skip
def test_a_fault_deep_inside_a_kernel_is_named_too(line, message):
    text = f"""kernel k[M=4](A: f16[M, M]) -> C: f16[M, M] {{
      shared a: f16[M, M], c: f32[M, M]
      for j in serial(4) {{
        for i in pipelined(2, stages=2) {{
          a = A[0, 0]
          {line}
        }}
      }}
      C[0, 0] = c
    }}"""
    assert error_of(text).message == message


@pytest.mark.parametrize(("text", "help"), [
    ("a = b && c", "conditions are joined by `and`, `or`"),
    ("a = b'", "a transposed operand is a.T"),
])  # fmt: skip
def test_a_character_from_another_language_is_named(text, help):
    assert error_of(whole_text("@ " + text)).help == help


def test_the_caret_stands_under_the_token_that_does_not_fit():
    error = error_of("kernel k(A: f32[4]) -> C: f32[4] {\n  a = b +\n}")
    assert error.render().splitlines()[2:] == ["    3 | }", "      | ^"]


def test_an_end_too_early_points_at_the_last_line():
    error = error_of("kernel k(A: f32[4]) -> C: f32[4] {\n  C[0] = A\n\n")
    assert (error.message, error.span.line) == ("a closing brace } is missing", 2)


def test_an_empty_text_says_how_a_kernel_begins():
    assert error_of("").help.startswith("kernel name")


LONG = """kernel k[M=64, N=32](A: f16[M, N], B: f32[N]) -> C: f16[M, N] {  # a kernel
  grid (i, j) = (ceildiv(M, 16), 1)
  shared a: f16[16, N], b: f32[N]
  fragment c: f32[16, N] = 0
  for k in pipelined(2, stages=2) {
    a = A[i*16, 0]
    if k == 0 { c = exp(a) } else { c += a * 2 }
  }
  parallel (x, y) in (16, N) { c[x, y] = c[x, y] + b[y] }
  C[i*16, 0] = c
}"""


@pytest.mark.slow
def test_a_text_that_ends_anywhere_is_told_to_be_unfinished() -> None:
    """No prefix is blamed on a token that is not there."""
    ends = [n for n in range(1, len(LONG)) if not LONG[n].isalnum()]
    messages = {n: error_of(LONG[:n]).message for n in ends}
    assert [LONG[:n] for n, message in messages.items() if "``" in message or "$END" in message] == []


def test_a_missing_parenthesis_is_shown_where_it_should_stand() -> None:
    error = error_of(LONG.replace("1)\n", "1  # so many\n\n"))
    assert error.message == "a closing parenthesis ) or a comma is missing"
    assert LONG.splitlines()[error.span.line - 1][: error.span.column - 1].endswith(", 1")


def test_a_body_without_its_brace_is_told_behind_a_result_of_two_dimensions() -> None:
    assert error_of(LONG.replace("{  # a kernel", "")).message == "the kernel's body stands in braces"
