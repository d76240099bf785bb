"""Odd texts that once ended in a fault of tile_eg, or in no time: each gets an error in its author's words, or compiles."""

from __future__ import annotations

import pytest

from tile_eg.errors import InternalError, TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.program.parser import parse_program
from tile_eg.jit import load
from tile_eg.search import search_options
from tile_eg.search.compiler import check_kernel, lower, meaning, plan

ROWS = """
kernel rows[C=16](X: f32[C, 16], V: f32[C]) -> (Y: f32[C, 16], W: f32[C]) {
  grid bx = 1
  shared x: f32[C, 16], v: f32[C], y: f32[C, 16]
  x = X[0, 0]
  v = V[0]
  y = x
  STATEMENT
  Y[0, 0] = y
  W[0] = v
}
"""


def refused(text: str) -> TileError:
    with pytest.raises(TileError) as caught:
        check_kernel(load_text(text, "k.tile").instantiate())
    assert caught.value.span is not None
    return caught.value


def test_a_store_that_is_not_done_for_all_rows_says_so() -> None:
    error = refused(ROWS.replace("STATEMENT", "for i in serial(C) { if i > 0 { v[i] = 1  Y[i, 0:16] = x[i, :] } }"))
    assert "of this loop and not for others" in error.message
    assert "select(i > 0, y[i], z[i])" in error.help


@pytest.mark.slow
def test_the_way_out_that_is_offered_compiles() -> None:
    text = ROWS.replace("STATEMENT", "for i in serial(C) { v[i] = select(i > 0, v[i], 1) }")
    assert lower(load_text(text, "k.tile").instantiate(), search=search_options(effort="none"))


def test_a_branch_that_is_the_same_for_all_rows_is_taken() -> None:
    text = ROWS.replace("STATEMENT", "for i in serial(C) { if i < 99 { v[i] = v[i] + 1 } }")
    check_kernel(load_text(text, "k.tile").instantiate())


def test_a_new_axis_stands_behind_a_vector_only() -> None:
    text = ROWS.replace("Y[0, 0]", "Y[0, None]").replace("STATEMENT", "")
    assert "None stands for a new axis of a vector" in refused(text).message


def test_a_deep_expression_is_read_in_one_pass() -> None:
    """Each operand was read twice, and each of its operands twice again: thirty levels took hours."""
    check_kernel(load_text(ROWS.replace("STATEMENT", "y = " + "(" * 60 + "x" + " + 1)" * 60), "k.tile").instantiate())


@pytest.mark.slow
def test_a_loop_of_many_trips_is_compiled_without_counting_them() -> None:
    text = """
kernel sums[M=200000000](X: f32[M, 64]) -> Y: f32[64] {
  grid bx = 1
  shared x: f32[64]
  fragment s: f32[64] = 0
  for i in serial(M) {
    x = X[i, 0]
    s = s + x
  }
  Y[0] = s
}
"""
    assert lower(load_text(text, "k.tile").instantiate(), search=search_options(effort="none"))


WIDE = """
kernel wide[N=512](A: f16[128, N]) -> C: f16[128, N] {
  grid bx = 2
  shared a: f16[64, 64]
  a = A[bx*64, 0]
  C[bx*64, 0] = a + 1
}
"""


@pytest.mark.slow
def test_what_is_beyond_its_field_is_the_kernels_limit_and_not_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tile_eg.emit.ascend_c.cube.BURST_BYTES", 64)  # as if a copy's field were narrower
    with pytest.raises(TileError, match="blockLen is up to 128, its field holds 64") as error:
        lower(load_text(WIDE, "k.tile").instantiate(), search=search_options(without=("blocks-together",)))
    assert error.value.message.startswith("no schedule of this kernel can be carried out")
    assert error.value.span is not None and error.value.help


@pytest.mark.slow
def test_a_program_with_such_a_field_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    held = plan(parse_program(str(lower(load_text(WIDE, "k.tile").instantiate()).program), "k.program"))
    monkeypatch.setattr("tile_eg.emit.ascend_c.cube.BURST_BYTES", 64)
    with pytest.raises(TileError, match="this program has no Ascend C: .* its field holds 64"):
        _ = held.source


@pytest.mark.slow
def test_a_template_is_compiled_at_its_own_sizes() -> None:
    template = load_text(WIDE, "k.tile")
    assert lower(template, search=search_options(effort="none")).kernel == template.instantiate({})
    assert check_kernel(template) == ()


def test_a_template_without_all_sizes_says_which() -> None:
    with pytest.raises(TileError, match="the size `N` has no value"):
        lower(load_text(WIDE.replace("=512", ""), "k.tile"))


@pytest.mark.parametrize("value", [3, None, "gemm.tile", load], ids=["int", "None", "str", "function"])
def test_what_is_no_kernel_is_refused_by_name(value: object) -> None:
    for take in (lower, check_kernel, lambda k: meaning(k, {})):
        with pytest.raises(TileError, match="a kernel is compiled here, not a value of type"):
            take(value)  # type: ignore[operator]


def test_a_fault_of_ours_is_still_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tile_eg.frontend.checks.check", lambda kernel: 1 // 0)
    with pytest.raises(InternalError, match="ZeroDivisionError"):
        check_kernel(load_text(WIDE, "k.tile").instantiate())


@pytest.mark.parametrize("results", ["(C: f32[8], D: f32[8])", "C: f32[8], D: f32[8]"])
def test_several_results_stand_with_or_without_parentheses(results: str) -> None:
    body = "grid b = 1 shared a: f32[8] a = A[0] C[0] = a D[0] = a + 1"
    kernel = load_text(f"kernel k(A: f32[8]) -> {results} {{ {body} }}", "k.tile").instantiate()
    assert [t.name for t in kernel.tensors if t.output] == ["C", "D"]
