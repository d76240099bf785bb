"""What `.tile` text says: sizes, windows, expressions, loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import BF16, F16, F32

GEMM = (Path(__file__).parents[2] / "examples" / "gemm.tile").read_text()


def statements(body: str, sizes: str = "") -> tuple[kn.Stmt, ...]:
    """The statements of a body over tensors A[8, 16] and Q[2, 3, 8, 16], a tile a[8, 16], a square s[8, 8] and a vector v[8]."""
    text = f"""kernel k{sizes}(A: f32[8, 16], Q: f16[2, 3, 8, 16]) -> C: f32[8, 16] {{
      grid (g, h) = (2, 3)  shared a: f32[8, 16], s: f32[8, 8], v: f32[8]  {body} }}"""
    return load_text(text).instantiate().body[3:]


def value(expression: str) -> kn.TileExpr:
    (assign,) = statements(f"a = {expression}")
    return assign.value


def whole(name: str, *shape: int) -> kn.Region:
    return kn.Region(name, (ix.ZERO,) * len(shape), shape)


A, S, V = whole("a", 8, 16), whole("s", 8, 8), whole("v", 8)


def test_a_template_tells_its_sizes_and_defaults():
    assert load_text(GEMM).sizes == {"M": 512, "N": 512, "K": 512, "BM": 128, "BN": 256, "BK": 64}


def test_a_default_may_use_the_sizes_before_it():
    template = load_text("kernel k[M, N=2*M, B=min(N, 64)](A: f32[N, B]) -> C: f32[N, B] { C = 0 }")
    assert template.sizes == {"M": None, "N": None, "B": None}
    assert template.instantiate({"M": 16}).tensors[0].shape == (32, 32)


def test_given_sizes_replace_the_defaults():
    assert load_text(GEMM).instantiate({"M": 100, "BM": 32}).grid == (("bx", 4), ("by", 2))


def test_sizes_follow_from_the_shapes_of_arrays():
    assert load_text(GEMM).sizes_of({"A": (3, 4), "B": (4, 5)}) == {"M": 3, "K": 4, "N": 5}


def test_arrays_that_disagree_on_a_size_are_refused():
    with pytest.raises(TileError, match="K is 4 in `A` and 6 in `B`"):
        load_text(GEMM).sizes_of({"A": (3, 4), "B": (6, 5)})


def test_an_array_of_the_wrong_rank_is_refused():
    with pytest.raises(TileError, match="`A` has 2 dimensions, the array has 1"):
        load_text(GEMM).sizes_of({"A": (3,)})


def test_results_are_output_tensors():
    kernel = load_text("kernel k(A: f32[4]) -> (C: f16[4], D: bf16[4]) { C = 0 D = 0 }").instantiate()
    assert [(t.name, t.dtype, t.output) for t in kernel.tensors] == [("A", F32, False), ("C", F16, True), ("D", BF16, True)]


def test_a_buffer_with_a_value_is_a_declaration_and_an_assignment():
    alloc, assign = statements("fragment c: f32[4] = 1")
    assert (alloc, assign) == (kn.Alloc("c", "fragment", F32, (4,)), kn.Assign(whole("c", 4), kn.Number(1.0)))


def test_a_start_takes_the_extent_of_the_other_side():
    assert value("A[g*8, 0]") == kn.Region("A", (ix.var("g") * 8, ix.ZERO), (8, 16))


def test_leading_indices_of_a_start_are_plain():
    assert value("Q[g, h, 0, 0]") == kn.Region("Q", (ix.var("g"), ix.var("h"), ix.ZERO, ix.ZERO), (None, None, 8, 16))


def test_slices_choose_the_dimensions_of_the_tile():
    assert value("Q[0:2, h, 4, :]") == kn.Region("Q", (ix.ZERO, ix.var("h"), ix.const(4), ix.ZERO), (2, None, None, 16))


def test_a_start_among_other_operands_takes_their_extent():
    assert value("A[0, 0] + v[:, None]").x == kn.Region("A", (ix.ZERO, ix.ZERO), (8, 16))


def test_a_start_in_a_product_takes_its_extent_from_product_and_factor():
    assert value("s @ A[0, 0]").b.extents == (8, 16)


def test_a_start_of_the_target_takes_the_extent_of_the_value():
    (assign,) = statements("C[g*8, 0] = a")
    assert assign.target.extents == (8, 16)


@pytest.mark.parametrize(("text", "tree"), [
    ("a + a * a", kn.Binary("add", A, kn.Binary("mul", A, A))),
    ("a - a - a", kn.Binary("sub", kn.Binary("sub", A, A), A)),
    ("-a / 2", kn.Binary("div", kn.Unary("neg", A), kn.Number(2.0))),
    ("max(a, 0)", kn.Binary("max", A, kn.Number(0.0))),
    ("log(a)", kn.Unary("ln", A)),
    ("s @ a", kn.MatMul(S, A)),
    ("s.T @ a", kn.MatMul(S, A, True, False)),
    ("a @ s.T", kn.MatMul(A, S, False, True)),
    ("rowmax(a)[:, None]", kn.Broadcast(kn.Reduce("max", A, 1), 1)),
    ("colsum(a)[None, :]", kn.Broadcast(kn.Reduce("sum", A, 0), 0)),
    ("sum(v)", kn.Reduce("sum", V, 1)),
    ("f16(a)", kn.Cast(F16, A)),
    ("float32(a)", kn.Cast(F32, A)),
    ("a * (1 / sqrt(16))", kn.Binary("mul", A, kn.Number(0.25))),
    ("a + 7 // 2", kn.Binary("add", A, kn.Number(3.0))),
    ("-inf", kn.Number(float("-inf"))),
    ("select(g == 0, a, 0)", kn.Select(ix.less(ix.var("g"), 1), A, kn.Number(0.0))),
])  # fmt: skip
def test_an_expression_is_read_as_it_would_be_on_a_whiteboard(text, tree):
    assert value(text) == tree


def test_an_augmented_assignment_reads_its_target():
    (assign,) = statements("a *= 2")
    assert assign.value == kn.Binary("mul", A, kn.Number(2.0))


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "**"])
def test_every_operator_of_tiles_has_its_assignment(sign):
    (short,), (long,) = statements(f"a {sign}= 2"), statements(f"a = a {sign} 2")
    assert short.value == long.value


def test_let_names_a_number_or_an_index():
    (assign,) = statements("let two = 4 / 2  let row = g*8  a = A[row, 0] * two")
    assert (assign.value.x.starts[0], assign.value.y) == (ix.var("g") * 8, kn.Number(2.0))


def test_loops_carry_their_range_kind_and_stages():
    first, second = statements("for k in pipelined(4, stages=2) { a = a }  for k in serial(1, 3) { a = a }")
    assert (first.var, first.start, first.extent, first.kind, first.stages) == ("k", 0, 4, "pipelined", 2)
    assert (second.var, second.start, second.extent, second.kind, second.stages) == ("k_1", 1, 2, "serial", 0)


def test_an_element_loop_indexes_single_elements():
    (loop,) = statements("parallel (i, j) in (8, 16) { a[i, j] = v[i] }")
    i, j = ix.var("i"), ix.var("j")
    step = kn.Assign(kn.Region("a", (i, j), (None, None)), kn.Region("v", (i,), (None,)))
    assert loop == kn.Parallel(("i", "j"), (8, 16), (step,))


def test_conditions_are_zero_or_one():
    (test,) = statements("if g == 1 and h >= 2 { a = 0 } else { a = 1 }")
    g, h = ix.var("g"), ix.var("h")
    assert test.condition == ix.both(ix.both(ix.less(g, 2), ix.less(1, g + 1)), ix.less(2, h + 1))


def test_comments_and_newlines_mean_nothing():
    assert statements("a = # the tile\n\n  a # and a number\n + 1") == statements("a = a + 1")


def test_a_span_covers_what_it_names():
    (assign,) = load_text("kernel k() -> C: f32[4] {\n  C[0:4] = 1.5\n}", "x.tile").instantiate().body
    assert assign.span == kn.Span("x.tile", 2, 3, 2, 15)
