"""Which operands may be copied into strips, and where an element of them then lies."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extract.kernels import CHIP, kernel
from tile_eg.egraph import saturate
from tile_eg.egraph.view import packed
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.index import BLOCK, ONE, const, evaluate, mul, var
from tile_eg.ir.sizes import size
from tile_eg.ir.values import Values, reachable
from tile_eg.ops.types import F16
from tile_eg.search.alike import values_of_any_size
from tile_eg.transforms.packed_operand import (
    Matrices,
    RowCuts,
    copyable,
    matrices_of,
    place,
    together,
    with_all_strips,
    with_strips,
    without_strips,
)

CUTS, B = RowCuts(long=512, request=512), Matrices(1, 256, 256)

GEMM = """
kernel gemm[M=4608, N=256, K=256, BM=16, BN=128, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  C[bx*BM, by*BN] = c
}
"""
BOTH_DOWN = GEMM.replace("A: f16[M, K]", "A: f16[K, M]").replace("a: f16[BM, BK]", "a: f16[BK, BM]")
BOTH_DOWN = BOTH_DOWN.replace("A[bx*BM, k*BK]", "A[k*BK, bx*BM]").replace("a @ b", "a.T @ b")
TRANSPOSED = GEMM.replace("B: f16[K, N]", "B: f16[N, K]").replace("b: f16[BK, BN]", "b: f16[BN, BK]")
TRANSPOSED = TRANSPOSED.replace("B[k*BK, by*BN]", "B[by*BN, k*BK]").replace("a @ b", "a @ b.T")
BYTES = TRANSPOSED.replace("f16[", "i8[").replace("C: i8", "C: f16").replace("f32[BM, BN]", "i32[BM, BN]")
BYTES = BYTES.replace("BK=64", "BK=128").replace("= c\n", "= f16(f32(c) * 0.0009765625)\n")


def values(text: str = GEMM, **sizes: int) -> Values:
    return to_values(kernel(text, **sizes))


def test_the_operand_whose_tiles_move_down_may_be_copied():
    assert copyable(values(), CUTS) == ["B"]


def test_tiles_that_move_along_their_rows_may_be_copied_where_no_tile_of_a_trip_is_larger():
    assert copyable(values(TRANSPOSED), CUTS) == ["B"]
    assert copyable(values(TRANSPOSED, BM=256), CUTS) == ["A"]
    assert copyable(values(BYTES, K=512), CUTS) == ["B"]


def test_tiles_that_move_along_rows_off_a_burst_may_be_copied_whatever_their_size():
    assert copyable(values(K=512), CUTS) == ["B"]
    assert copyable(values(K=520), CUTS) == ["A", "B"]


def test_so_may_long_rows_off_a_burst():
    assert copyable(values(N=1040, BN=512), CUTS) == ["B"]


def test_several_operands_are_offered_together_and_each_alone():
    assert together(copyable(values(BOTH_DOWN), CUTS)) == ["A and B", "A", "B"]
    v = values(BOTH_DOWN)
    found = with_all_strips(v, ["A", "B"])
    assert found.strips == {"A": "A_strips", "B": "B_strips"}
    assert with_strips(v, found, "B").strips == {"B": "B_strips"}
    assert without_strips(found) == v


BATCHED = """
kernel batched[Z=3, M=64, N=250, K=128, BM=16, BN=128, BK=64](A: f16[Z, M, K], B: f16[Z, K, N]) -> C: f16[Z, M, N] {
  grid (bx, by, z) = (ceildiv(M, BM), ceildiv(N, BN), Z)
  shared a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[z, bx*BM, k*BK]
    b = B[z, k*BK, by*BN]
    c += a @ b
  }
  C[z, bx*BM, by*BN] = c
}
"""


def test_of_several_matrices_only_rows_that_are_cut_may_be_copied():
    assert copyable(values(BATCHED, K=256), CUTS) == ["B"]
    assert copyable(values(BATCHED, K=130), CUTS) == ["A", "B"]
    assert copyable(values(BATCHED, K=256, N=256), CUTS) == []


def test_where_starts_cut_no_rows_these_may_not():
    uncut = RowCuts(long=512, request=0)
    assert (copyable(values(BATCHED), uncut), copyable(values(K=520), uncut)) == ([], ["B"])


@pytest.mark.parametrize(
    ("shape", "stride", "found"),
    [
        ((30, 50), 50, Matrices(1, 30, 50)),
        ((2, 3, 30, 50), 50, Matrices(6, 30, 50)),
        ((2, 30, 3, 50), 150, Matrices(2, 30, 150)),
        ((1, 30, 1, 50), 50, Matrices(1, 30, 50)),
        ((30, 50), 60, None),
    ],
    ids=["one", "heads first", "heads behind rows", "dimensions of one", "rows of something else"],
)
def test_a_tensor_is_matrices_by_how_far_rows_lie_apart(shape, stride, found):
    assert Matrices.of(shape, stride) == found


ROWS, COLS = size("M", 4096), size("K", 4000)


@pytest.mark.parametrize(
    ("shape", "stride", "found"),
    [
        ((ROWS, 50), 50, Matrices(1, ROWS, 50)),
        ((30, COLS), COLS, Matrices(1, 30, COLS)),
        ((6, ROWS, 50), 50, Matrices(6, ROWS, 50)),
        ((ROWS, 30, 50), 50, None),
        ((6, ROWS, COLS), COLS, None),
        ((ROWS, 30, 50), 1500, Matrices(1, ROWS, 1500)),
    ],
    ids=["open rows", "open columns", "of heads", "open heads", "open columns of heads", "heads behind rows"],
)
def test_sizes_may_decide_the_rows_and_columns_of_one_matrix_and_the_rows_of_several(shape, stride, found):
    assert Matrices.of(shape, stride) == found


@pytest.mark.parametrize(
    ("m", "n", "part"),
    [
        (Matrices(1, ROWS, 50), 6400, (var("k"), 0, 128, 0)),
        (Matrices(1, 30, COLS), 64, (var("k"), 0, 0, 64)),
        (Matrices(3, 30, 50), 3000 + 100 + 7, (var("k"), 2, 2, 7)),
    ],
    ids=["rows", "columns", "all three"],
)
def test_a_number_of_elements_is_so_many_matrices_rows_and_columns(m, n, part):
    assert m.part(var("k"), n) == part


def test_multiples_of_open_columns_are_rows_and_of_open_rows_matrices():
    assert Matrices(1, 30, COLS).part(mul(var("k"), COLS), 64) == (var("k"), 0, 64, 0)
    assert Matrices(1, 30, COLS).part(COLS, 3) == (ONE, 0, 3, 0)
    assert Matrices(6, ROWS, 50).part(mul(var("k"), ROWS), 100) == (var("k"), 2, 0, 0)


@pytest.mark.slow
@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(0, 9), st.integers(0, 9))
def test_an_element_of_a_matrix_of_any_size_lies_in_its_strip(rows, cols, k, x):
    v, sizes = of_any_size(), {"M": rows, "N": cols, "K": cols}
    load = next(t for t in reachable(v) if t.op == "load" and t.args[0].args[0].name == "A")
    m = matrices_of(v, load)
    assert m == Matrices(1, v.sizes.shapes[0][0], v.sizes.shapes[0][1])
    at, env = place(v, m, F16, load.args[1]), {"k": k, BLOCK: x, **sizes}
    row, col = divmod(x % -(-rows // 16) * 16 * 5000 + k * 64, 5000)
    assert at is not None and evaluate(at, env) == col // 16 * (rows * 16) + row * 16


@cache
def of_any_size() -> Values:
    template = load_text(GEMM, "gemm.tile")
    made = values_of_any_size(template.instantiate, {"M": 4096, "N": 4096, "K": 4096})
    assert isinstance(made, Values)
    return made


def test_rows_as_far_apart_as_a_size_says_may_begin_anywhere():
    assert copyable(of_any_size(), CUTS) == ["A", "B"]
    aligned = replace(of_any_size().sizes, multiples=(("K", 256), ("N", 256)))
    assert copyable(replace(of_any_size(), sizes=aligned), CUTS) == ["B"]


def test_what_holds_strips_has_its_shape_with_the_sizes_and_goes_with_them():
    v = of_any_size()
    found = with_all_strips(v, ["A", "B"])
    assert [name for name, _ in found.sizes.shared] == ["A_strips", "B_strips"]
    shapes = [tuple(evaluate(e, {"M": 100, "N": 40, "K": 33}) for e in shape) for _, shape in found.sizes.shared]
    assert shapes == [(3, 1600), (3, 528)]
    assert without_strips(found).sizes == v.sizes
    assert with_strips(v, found, "B").sizes.shared == found.sizes.shared[1:]
    assert evaluate(found.sizes.stride("A_strips", 4096 * 16), {"M": 100}) == 1600


def test_strips_of_several_matrices_lie_one_matrix_behind_the_other():
    at = place(values(BATCHED, K=130), Matrices(3, 130, 250), F16, var("k") * 16000 + const(2 * 130 * 250 + 250 + 32))
    assert at is not None and evaluate(at, {"k": 1}) == 2 * (16 * 130 * 16) + 2 * (130 * 16) + (64 + 1) * 16


def test_an_offset_whose_rows_may_run_over_into_the_next_matrix_has_no_place():
    assert place(values(BATCHED, K=130), Matrices(3, 130, 250), F16, var("k") * 32500) is not None
    assert place(values(BATCHED, K=130), Matrices(3, 130, 250), F16, var("k") * 17500) is None


def test_long_rows_on_a_burst_may_not():
    assert not copyable(values(N=1024, BN=512), CUTS)


@pytest.mark.slow
@given(st.data())
def test_an_element_lies_in_its_strip_under_those_of_the_rows_before(data):
    text, wide = data.draw(st.sampled_from([(GEMM, 16), (GEMM.replace("f16", "i8").replace("f32", "i32"), 32)]))
    rows, cols = 64 * 5, 256 * data.draw(st.integers(1, 2))
    v = values(text, N=cols, K=rows)
    tensor = next(t for t in v.tensors if t.name == "B")
    row, col = data.draw(st.integers(0, 3)), wide * data.draw(st.integers(0, 128 // wide - 1))
    offset = var("k") * (64 * cols) + (var(BLOCK) // 288) * 128 + const(row * cols + col)
    at = place(v, Matrices(1, rows, cols), tensor.dtype, offset)
    env = {"k": data.draw(st.integers(0, 4)), BLOCK: data.draw(st.integers(0, v.blocks - 1))}
    r, c = divmod(evaluate(offset, env), cols)
    assert at is not None and evaluate(at, env) == c // wide * (rows * wide) + r * wide


def test_an_offset_whose_columns_may_run_over_has_no_place():
    assert place(values(), B, F16, var(BLOCK) * 128) is None


def test_an_offset_inside_of_a_strip_has_no_place():
    assert place(values(), B, F16, const(8)) is None


@pytest.mark.slow
def test_the_grid_offers_the_copy_where_cores_go_through_many_tiles():
    def offered(rows: int) -> list:
        return [g.payload for g in saturate(values(M=rows), CHIP).grids if g.op == "Strips"]

    assert (offered(4608), offered(128)) == ([("B",)], [])


def test_one_e_graph_serves_the_kernel_with_strips_and_loads_no_other_way_then():
    plain = saturate(values(), CHIP)
    assert not [n for n in plain.nodes if n.op == "GmToL1Strips"]
    graph = packed(plain, "B")
    loads = [n for n in graph.nodes if n.op == "GmToL1Strips"]
    assert {n.payload[0] for n in loads} == {"B_strips"}
    assert {n.op for n in graph.classes[loads[0].cls]} == {"GmToL1Strips"}
    added = {(n.op, n.payload) for n in graph.nodes} - {(n.op, n.payload) for n in plain.nodes}
    assert {op for op, _ in added} == {"GM0", "GmToL1Strips"}
