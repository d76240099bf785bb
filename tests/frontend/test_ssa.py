"""How statements become terms: one fact a test."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.checks import check
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir import index as ix
from tile_eg.ir.reference import run_kernel, run_values
from tile_eg.ir.values import Term, Values
from tile_eg.ops.types import BF16, F16, F32


def values_of(body: str, grid: str = "grid g = 1", result: str = "C: f32[8, 16]") -> Values:
    """The values of a body over tensors A, H[8, 16], Q[2, 3, 40, 16], S[2, 40, 3, 16] and tiles a, b, h, t[8, 16], v[8]."""
    text = f"""kernel k(A: f32[8, 16], H: f16[8, 16], Q: f32[2, 3, 40, 16], S: f32[2, 40, 3, 16]) -> {result} {{
      {grid}  shared a: f32[8, 16], b: f32[8, 16], h: f16[8, 16], t: bf16[8, 16], v: f32[8] {body} }}"""
    kernel = load_text(text).instantiate()
    check(kernel)
    rng = np.random.default_rng(0)
    inputs = {t.name: rng.uniform(-1, 1, t.shape).astype(t.dtype.numpy) for t in kernel.tensors if not t.output}
    values = to_values(kernel)
    for name, expected in run_kernel(kernel, inputs).items():
        np.testing.assert_allclose(run_values(values, inputs)[name], expected, rtol=1e-3, atol=1e-4)
    return values


def terms(t: object) -> Iterator[Term]:
    """Every term below, operands first."""
    if isinstance(t, tuple):
        for x in t:
            yield from terms(x)
    elif isinstance(t, Term):
        yield from terms(t.args)
        yield t


def the(values: Values, op: str) -> Term:
    """The only term with this op."""
    found = {t for t in terms(values.outputs) if t.op == op}
    assert len(found) == 1, f"{len(found)} terms are {op}"
    return found.pop()


def stored(values: Values) -> Term:
    return the(values, "store").args[3]


def states(values: Values) -> tuple[tuple[Term, Term], ...]:
    return the(values, "loop").args[2]


# windows


def test_a_grid_variable_is_the_block_index_with_the_first_dimension_fastest():
    v = values_of("C[x, y, z, 0:16] = Q[y, x, z, :]", grid="grid (x, y, z) = (3, 2, 5)", result="C: f32[3, 2, 5, 16]")
    block = ix.var("block")
    assert the(v, "load").args[1] == block // 6 * 16 + block % 3 * 640 + block // 3 % 2 * 1920


def test_a_window_of_adjacent_dimensions_has_the_row_pitch_as_stride():
    assert the(values_of("a = Q[1, 2, 8, 0] C[0, 0] = a"), "load").args[1:] == (ix.const(1920 + 1280 + 128), 16)


def test_a_window_may_skip_a_dimension():
    assert the(values_of("a = S[1, 8:16, 2, :] C[0, 0] = a"), "load").args[1:] == (ix.const(1920 + 8 * 48 + 32), 48)


def test_a_vector_is_one_row():
    t = the(values_of("v = A[3, 0] C[0, 0:8] = v"), "load")
    assert (t.rows, t.cols) == (1, 8)


def test_a_window_that_always_lies_inside_is_wholly_valid():
    t = the(values_of("a = Q[0, 0, g*8, 0] C[g*8, 0] = a", grid="grid g = 5", result="C: f32[40, 16]"), "load")
    assert (t.vrows, t.vcols) == (ix.const(8), ix.const(16))


def test_a_window_at_the_edge_says_how_much_of_it_is_valid():
    t = the(values_of("for i in serial(3) { a = Q[0, 0, i*16, 0] C[0, 0] = a }"), "load")
    assert t.vrows == ix.const(8)
    wide = the(values_of("shared w: f32[16, 16] for i in serial(3) { w = Q[0, 0, i*16, 0] C[0:16, 0:16] = w }"), "load")
    assert wide.vrows == ix.const(8)


def test_a_constant_tail_is_a_constant():
    assert the(values_of("a = Q[0, 0, 36, 0] C[0, 0] = a"), "load").vrows == ix.const(4)


# arithmetic


def test_mixed_element_types_are_cast_to_f32():
    v = values_of("a = A[0, 0] h = H[0, 0] C[0, 0] = a + h")
    assert (stored(v).args[2].op, stored(v).args[2].dtype) == ("cast", F32)


def test_half_precision_stays_half_precision():
    assert stored(values_of("h = H[0, 0] C[0, 0] = h * 2")).args[0].dtype == F16


def test_bfloat16_is_computed_in_f32_and_rounded_back():
    v = values_of("t = A[0, 0] C[0, 0] = t * t")
    rounded = stored(v).args[0]
    assert (rounded.op, rounded.dtype, rounded.args[0].op, rounded.args[0].dtype) == ("cast", BF16, "binary", F32)


def test_a_number_takes_the_other_operands_type_and_extents():
    number = stored(values_of("h = H[0, 0] C[0, 0] = h * 2")).args[0].args[2]
    assert (number.op, number.args, number.dtype, number.cols) == ("fill", (2.0,), F16, 16)


def test_a_constant_is_rounded_by_the_type_that_holds_it():
    assert stored(values_of("h = 0.1 C[0, 0] = f32(h)")).args == (0.0999755859375,)


def test_an_assignment_casts_to_its_buffers_type():
    assert stored(values_of("h = A[0, 0] C[0, 0] = h", result="C: f16[8, 16]")).op == "cast"


def test_equal_expressions_are_one_term():
    v = values_of("a = A[0, 0] C[0, 0] = exp(a) * exp(a)")
    assert stored(v).args[1] is stored(v).args[2]


def test_a_term_knows_its_buffer_and_line():
    v = values_of("a = A[0, 0]\n C[0, 0] = a")
    load = the(v, "load")
    assert (v.buffers[load], v.spans[load].line) == (("a", "shared"), 2)


# loops

ACCUMULATE = "for k in pipelined(4, stages=2) { a = Q[0, 0, k*8, 0] BODY } C[0, 0] = b"


def test_a_loop_is_one_term_with_its_trips_and_stages():
    loop = the(values_of("b = 0 " + ACCUMULATE.replace("BODY", "b += a")), "loop")
    assert (loop.args[0], loop.args[1], loop.args[3]) == (1, 4, 2)


def test_a_loop_knows_its_parent_and_variable():
    v = values_of("b = 0 for i in serial(2) { for k in serial(3) { a = Q[i, k, 0, 0] b += a } } C[0, 0] = b")
    assert (v.parents, v.trips, v.variables) == ({1: 0, 2: 1}, {1: 2, 2: 3}, {1: "i", 2: "k"})


def test_only_what_crosses_the_back_edge_is_a_state():
    assert len(states(values_of("b = 0 " + ACCUMULATE.replace("BODY", "v = rowsum(a) b += a")))) == 1


@pytest.mark.parametrize("body", [
    "if k == 0 { b = 0 } b += a",
    "if k == 0 { b = a } else { b += a }",
    "if k != 0 { b += a } else { b = a }",
    "b = select(k == 0, 0, b) + a",
    "b = select(k > 0, a + b, a)",
])  # fmt: skip
def test_an_initialisation_on_the_first_trip_is_the_initial_value(body):
    ((init, following),) = states(values_of(ACCUMULATE.replace("BODY", body)))
    assert (init.op, init.args, following.op) == ("fill", (0.0,), "binary")


def test_a_maximum_that_begins_on_the_first_trip_begins_at_minus_infinity():
    ((init, _),) = states(values_of(ACCUMULATE.replace("BODY", "if k == 0 { b = a } else { b = max(b, a) }")))
    assert init.args == (-inf,)


def test_a_first_trip_that_does_something_else_is_a_choice_in_each():
    found = terms(values_of(ACCUMULATE.replace("BODY", "if k == 0 { b = exp(a) } else { b = b + a }")).outputs)
    assert any(t.op == "choose_at" for t in found)


def test_an_outer_loops_first_trip_may_begin_an_inner_sum():
    body = "if i == 0 and k == 0 { b = 0 } a = Q[i, k, 0, 0] b += a"
    v = values_of(f"for i in serial(2) {{ for k in serial(3) {{ {body} }} }} C[0, 0] = b")
    assert {t.args for t in terms(v.outputs) if t.op == "fill"} == {(0.0,)}


def test_an_initial_value_is_as_valid_as_the_state():
    ((init, following),) = states(values_of("b = 0 for k in serial(3) { a = Q[0, k, 36, 0] b += a } C[0, 0] = b"))
    assert (init.vrows, following.vrows) == (ix.const(4), ix.const(4))


@pytest.mark.parametrize("use", ["v += rowsum(b)", "for i in serial(8) { v[i] = v[i] + sum(b[i, :]) }", "v += rowsum(b @ b.T)"])
def test_a_first_trip_that_sees_more_than_the_later_ones_is_refused(use):
    body = f"b = 1 v = 0 for k in serial(3) {{ {use}  b += Q[0, k, 0:8, 8:24] }} C[0, 0] = b + v[:, None]"
    with pytest.raises(TileError, match="the first trip of this loop does something else"):
        values_of(body)


def test_one_trip_is_no_loop():
    v = values_of("b = 0 for k in serial(2, 3) { b += Q[0, k, 0:8, :] } C[0, 0] = b")
    assert "loop" not in {t.op for t in terms(v.outputs)}


def test_no_trip_is_nothing():
    assert stored(values_of("b = 1 for k in serial(0) { b = 2 } C[0, 0] = b")).args == (1.0,)


def test_a_range_that_begins_later_is_counted_from_zero():
    v = values_of("b = 0 for k in serial(1, 3) { b += Q[0, k, 0:8, :] } C[0, 0] = b")
    assert the(v, "load").args[1] == ix.var("k") * 640 + 640


def test_two_loops_of_one_name_have_two_variables():
    v = values_of("b = 0 for k in serial(2) { b += Q[k, 0, 0:8, :] } for k in serial(3) { b += Q[0, k, 0:8, :] } C[0, 0] = b")
    assert len(set(v.variables.values())) == 2


def test_states_may_exchange_their_values():
    v = values_of("a = A[0, 0] b = 0 for k in serial(3) { t = a  a = b  b = f32(t) } C[0, 0] = a")
    assert len(states(v)) == 2


def test_a_store_in_a_loop_carries_the_tensors_version():
    v = values_of("for k in serial(3) { a = Q[0, k, 0, 0] C[k, 0:16] = rowsum(a.T @ a) }")
    ((before, after),) = states(v)
    assert (before.op, after.op, after.args[0].op, v.outputs[0].op) == ("given", "store", "targ", "tproj")


def test_what_was_written_can_be_read_back():
    v = values_of("a = A[0, 0] C[0, 0] = a  b = C[0, 0] C[0, 0] = b + 1")
    loads = {t.args[0].op for t in terms(v.outputs) if t.op == "load"}
    assert loads == {"given", "store"}


def test_a_loop_that_nothing_uses_is_dropped():
    assert values_of("b = 0 for k in serial(3) { b += 1 } a = A[0, 0] C[0, 0] = a").trips == {}


def test_a_products_operands_end_at_the_same_inner_index():
    text = """kernel k(A: f32[8, 10], B: f32[12, 8]) -> C: f32[8, 8] {
      shared a: f32[8, 16], b: f32[16, 8], p: f32[16, 8]  a = A[0, 0]  p = 1  C[0:8, :] = a @ p }"""
    values = to_values(load_text(text).instantiate())
    product = the(values, "matmul")
    assert [product.args[0].vcols, product.args[1].vrows] == [ix.const(10), ix.const(10)]


def test_a_store_writes_no_more_than_the_tensor_holds():
    v = values_of("shared w: f32[16, 16] w = 1  C[0, 0] = w")
    assert (stored(v).vrows, stored(v).vcols) == (ix.const(8), ix.const(16))


def test_a_value_that_each_trip_makes_anew_and_the_same_is_no_state():
    v = values_of("a = A[0:8, 0:16]  for k in serial(3) { b = exp(a)  v = rowmax(b) } C[0, 0] = b + v[:, None]")
    assert not [t for t in terms(v.outputs) if t.op == "loop"]


def test_a_value_that_no_trip_changes_is_no_state():
    v = values_of("a = A[0:8, 0:16]  b = a  for k in serial(3) { if k == 0 { b = a + a }  a = a } C[0, 0] = a + b")
    assert not [t for t in terms(v.outputs) if t.op == "loop"]


def test_a_value_that_a_later_trip_reads_before_it_is_made_anew_is_a_state():
    v = values_of("a = A[0:8, 0:16]  b = a + a  t = a  for k in serial(3) { t = b  b = exp(a) } C[0, 0] = t + f32(t)")
    assert [len(t.args[2]) for t in set(terms(v.outputs)) if t.op == "loop"] == [2]


def test_what_a_loop_in_a_loop_makes_stays_where_it_is():
    v = values_of("a = A[0:8, 0:16]  for k in serial(3) { b = 0  for j in serial(2) { b += a } } C[0, 0] = b")
    assert v.parents == {1: 0, 2: 1}


def test_a_sum_of_half_precision_is_computed_in_f32_and_rounded_back():
    v = values_of("h = H[0:8, 0:16]  h = h - rowsum(h)[:, None] C[0, 0] = h")
    assert [(t.dtype, t.args[2].dtype) for t in set(terms(v.outputs)) if t.op == "reduce"] == [(F32, F32)]
    assert any(t.op == "cast" and t.dtype == F16 for t in terms(v.outputs))
