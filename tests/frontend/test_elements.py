"""Element loops and row loops: which scalar expressions they become, and that they compute what they say."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.checks import check
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.reference import run_kernel, run_values
from tile_eg.ir.values import Term, Values

HEAD = """kernel k[M=8, N=16](X: f32[M, N], V: f32[M], W: f32[N]) -> (Y: f32[M, N], Z: f32[M]) {
  shared x: f32[8, 16], y: f32[8, 16] = 0, v: f32[8], w: f32[16], z: f32[8] = 0, q: f32[8, 4] = 2
  x = X[0, 0]  v = V[0]  w = W[0]
"""
TAIL = "  Y[0, 0] = y  Z[0] = z }"


BRANCHES = [
    "parallel (i, j) in (8, 16) { if x[i, j] > 0 { y[i, j] = x[i, j] } else { y[i, j] = v[i] } }",
    "parallel (i, j) in (8, 16) { if i == j or not i < 3 { y[i, j] = w[j]  if j < 4 { x[i, j] = 1 } } }  y = y + x",
]


@pytest.mark.parametrize("body", BRANCHES)
def test_a_branch_in_an_element_loop_keeps_what_is_not_meant(body: str) -> None:
    values_of(body)


PARTS = [
    "parallel (i, j) in (8, 8) { Y[i, j] = x[i, j] * w[j + 8] - x[i, j + 8]  Y[i, j + 8] = x[i, j + 8] + v[i] }",
    "x = x * w[None, :]  parallel (i, j) in (4, 16) { Y[i, j] = x[i, j]  Y[i + 4, j] = x[i + 4, j] - x[i, j] }",
    "x = select(x > v[:, None], x, -x)  parallel (i, j) in (8, 16) { y[i, j] = x[2, j] * x[i, j] }",
    "parallel (i, j) in (8, 16) { x[i, j] = select(i < j, exp(v[i]) + w[j], 1) } for i in serial(8) { z[i] = max(x[i, 3:9]) }",
]


@pytest.mark.parametrize("body", PARTS)
def test_parts_of_tiles_are_made_of_parts_of_what_was_loaded(body: str) -> None:
    values_of(body)
    values_of(body, M=5)


def values_of(body: str, **sizes: int) -> Values:
    """The values of a body, which are found to mean what the kernel means."""
    kernel = load_text(HEAD + body + TAIL).instantiate(sizes)
    check(kernel)
    rng = np.random.default_rng(0)
    inputs = {t.name: rng.uniform(-1, 1, t.shape).astype(np.float32) for t in kernel.tensors if not t.output}
    values, expected = to_values(kernel), run_kernel(kernel, inputs)
    for name, found in run_values(values, inputs).items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-5, atol=1e-5)
    return values


def y_of(body: str) -> Term:
    """The tile that is stored to Y."""
    return values_of(body).outputs[0].args[3]


def z_of(body: str) -> Term:
    return values_of(body).outputs[1].args[3]


def shown(t: Term) -> str:
    """A scalar expression in one line, tiles by their op."""
    if t.op in ("elem", "elem_row", "elem_col"):
        return f"{t.op} {t.args[0].op}"
    return f"{t.op}({', '.join(shown(a) if isinstance(a, Term) else str(a) for a in t.args)})"


CASES = [
    ("parallel (i, j) in (8, 16) { y[i, j] = x[i, j] }", "nest(elem load)"),
    ("parallel (i, j) in (8, 16) { y[i, j] = exp(v[i]) }", "nest(s_unary(exp, elem_row load))"),
    ("parallel (i, j) in (8, 16) { y[i, j] = x[i, j] - v[i] }", "nest(s_binary(sub, elem load, elem_row load))"),
    ("parallel (i, j) in (8, 16) { y[i, j] = x[i, j] * w[j] }", "nest(s_binary(mul, elem load, elem_col load))"),
    ("parallel (i, j) in (8, 16) { y[i, j] = 3 }", "nest(number(3.0))"),
    ("parallel (i, j) in (8, 16) { y[i, j] = f16(x[i, j]) }", "nest(s_cast(s_cast(elem load)))"),
    ("for i in serial(8) { y[i, :] = x[i, :] * 2 }", "nest(s_binary(mul, elem load, number(2.0)))"),
    (
        "parallel (i, j) in (8, 16) { y[i, j] = select(x[i, j] < v[i], 0, x[i, j]) }",
        "nest(s_choose(lt, elem load, elem_row load, number(0.0), elem load))",
    ),
    (
        "parallel (i, j) in (8, 16) { y[i, j] = select(i >= j, x[i, j], 0) }",
        "nest(s_choose_at(lt, -1, 1, 1, elem load, number(0.0)))",
    ),
    ("parallel (i, j) in (8, 16) { y[i, j] = select(i + j < 30, x[i, j], 0) }", "nest(elem load)"),
    ("for i in serial(8) { y[i, :] = v[i] }", "nest(elem_row load)"),
    ("for i in serial(8) { y[i, :] = x[i, :] / sum(x[i, :]) }", "nest(s_binary(div, elem load, s_reduce(sum, elem load)))"),
    ("for i in serial(8) { y[i, :] = x[i, :] + sum(q[i, :]) }", "nest(s_binary(add, elem load, s_reduce(sum, elem fill)))"),
    ("for i in serial(8) { for j in serial(16) { y[i, j] = x[i, j] } }", "nest(elem load)"),
    ("for i in serial(8) { parallel j in 16 { y[i, j] = x[i, j] * v[i] } }", "nest(s_binary(mul, elem load, elem_row load))"),
    ("for j in serial(16) { parallel i in 8 { y[i, j] = x[i, j] } }", "nest(elem load)"),
    ("for i in serial(8) { w = x[i, :] * 2  y[i, :] = w + 1 }", "nest(s_binary(add, elem nest, number(1.0)))"),
    ("parallel (i, j) in (8, 16) { y[i, j] = X[i, j] }", "nest(elem load)"),
    ("parallel (i, j) in (8, 16) { y[i, j] = x[i, j] + (2*i + j) }", "nest(s_binary(add, elem load, s_index(2, 1, 0)))"),
]  # fmt: skip


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("body", "expected"), CASES, ids=[c[0] for c in CASES])
def test_a_loop_over_a_tile_is_a_nest(body, expected):
    assert shown(y_of(body)) == expected


VECTORS = [
    ("parallel i in 8 { z[i] = v[i] * 2 }", "nest(s_binary(mul, elem load, number(2.0)))"),
    ("for i in serial(8) { z[i] = max(v[i], max(x[i, :])) }", "nest(s_binary(max, elem load, s_reduce(max, elem load)))"),
    ("for i in serial(8) { z[i] = sum(x[i, :] * v[i]) }", "nest(s_reduce(sum, s_binary(mul, elem load, elem_row load)))"),
    ("for i in serial(8) { z[i] = sum(x[i, :] * w) }", "nest(s_reduce(sum, s_binary(mul, elem load, elem_col load)))"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), VECTORS, ids=[c[0] for c in VECTORS])
def test_a_loop_over_a_vector_is_a_nest_of_one_row(body, expected):
    nest = z_of(body)
    assert (shown(nest), nest.rows, nest.cols) == (expected, 1, 8)


def test_a_statement_sees_what_the_one_before_it_wrote():
    nest = y_of("for i in serial(8) { y[i, :] = x[i, :] * 2  y[i, :] = y[i, :] + 1 }")
    assert shown(nest) == "nest(s_binary(add, elem nest, number(1.0)))"


def test_an_element_loop_may_store_to_a_tensor():
    values = values_of("parallel (i, j) in (8, 16) { Y[i, j] = x[i, j] + 1 }  y = Y[0, 0]")
    assert values.outputs[0].args[3].args[0].args[3].op == "nest"


@pytest.mark.parametrize("sizes", [{"M": 5, "N": 16}, {"M": 8, "N": 3}, {"M": 1, "N": 1}])
def test_loops_over_rows_and_elements_keep_to_what_is_valid(sizes):
    values_of(
        """for i in serial(8) {
      z[i] = max(x[i, :])
      y[i, :] = exp(x[i, :] - z[i])
      z[i] = sum(y[i, :])
    }
    parallel (i, j) in (8, 16) { y[i, j] = y[i, j] / z[i] + w[j] }""",
        **sizes,
    )


def test_a_condition_on_an_outer_loop_is_decided_inside_a_row_loop():
    values_of("for k in serial(3) { for i in serial(8) { if k == 0 { z[i] = 0 }  z[i] = z[i] + sum(x[i, :]) } }")


NUMBERED = [
    "for k in serial(2) { parallel (i, j) in (8, 16) { y[i, j] = y[i, j] + v[i] * (3*k*16 + j - i) } }",
    "parallel (i, j) in (8, 16) { y[i, j] = select(x[i, j] * 4 < i - j, i / 3, j * 0.5) }",
    "parallel i in 8 { z[i] = v[i] + f16(i) * 0.25 }",
    "for k in serial(3) { y = y + x * k  z = z + k * v }",
    "for i in serial(8) { y[i, :] = x[i, :] / (i + 1) }",
    "for k in serial(3) { y = y + x * (k + 1) }",
    "parallel (i, j) in (8, 16) { x[i, j] = i + 2*j } parallel (i, j) in (4, 16) { Y[i, j] = x[2*i + 1, j] }",
]


@pytest.mark.parametrize("body", NUMBERED)
def test_an_index_is_a_number_where_a_value_stands(body: str) -> None:
    values_of(body)
    values_of(body, M=6)


def test_a_number_that_f32_does_not_hold_exactly_is_refused() -> None:
    with pytest.raises(TileError, match="numbers up to 28000000 are too large here"):
        values_of("for i in serial(8) { y[i, :] = x[i, :] + i * 3500000 }")


STRIDED = [
    "parallel (i, j) in (4, 16) { Y[i, j] = x[2*i, j] * x[2*i + 1, j] }",
    "parallel (i, j) in (4, 16) { Y[2*i, j] = x[i, j]  Y[2*i + 1, j] = x[i + 4, j] }",
    "parallel (i, j) in (4, 16) { Y[i, j] = select(i <= j, X[2*i + 1, j], x[i, j]) }",
    "x = select(x > w[None, :], x, -x)  parallel (i, j) in (4, 16) { Y[i + 4, j] = exp(x[2*i, j]) }",
    "parallel (i, j) in (8, 16) { x[i, j] = select(i < j, w[j], 1) } parallel (i, j) in (4, 16) { Y[2*i, j] = x[2*i, j] }",
]


@pytest.mark.parametrize("body", STRIDED)
def test_rows_may_be_a_fixed_number_apart(body: str) -> None:
    values_of(body)
    values_of(body, M=6)


def test_iterations_that_write_the_same_row_are_refused() -> None:
    with pytest.raises(TileError, match="iterations of `i` meet at `Y`"):
        values_of("parallel (i, j) in (4, 16) { Y[2*i, j] = x[i, j]  Y[2*i + 2, j] = x[i, j] }")
