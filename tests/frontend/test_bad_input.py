"""What does not fit is refused with a message, its place, and what to do: one fault a line of these tables."""

from __future__ import annotations

import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.checks import check
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import F32

GEMM = """kernel gemm[M=512, N=512, K=512, BM=128, BN=256, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared   a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0, v: f32[BM] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  C[bx*BM, by*BN] = c
}
"""


def error_of(text: str) -> TileError:
    """The error of a text on its way through the frontend."""
    with pytest.raises(TileError) as caught:
        kernel = load_text(text, "x.tile").instantiate()
        check(kernel)
        to_values(kernel)
    return caught.value


def changed(old: str, new: str) -> str:
    assert old in GEMM
    return GEMM.replace(old, new, 1)


def marked(error: TileError, text: str) -> str:
    """The text above the caret."""
    line = text.splitlines()[error.span.line - 1]
    return line[error.span.column - 1 : error.span.end_column - 1]


FAULTS = [
    # names
    ("a @ b", "a @ bb", "unknown name `bb`", "bb", "did you mean `b`?"),
    ("a @ b", "exq(a) @ b", "unknown function `exq`", "exq(a)", "did you mean `exp`?"),
    ("A[bx*BM", "A[bxx*BM", "unknown name `bxx`", "bxx", "did you mean `bx`"),
    ("f16[BM, BK]", "f17[BM, BK]", "unknown element type `f17`", "f17", "did you mean `f16`?"),
    ("(bx, by) =", "(bx, bx) =", "`bx` is defined twice", "bx", ""),
    ("b: f16[BK", "a: f16[BK", "`a` is defined twice", "a", ""),
    ("for k", "for M", "`M` is defined twice", "M", ""),
    ("a = A[bx*BM, k*BK]", "M = 3", "`M` is a number, not a buffer or a tensor", "M", ""),
    ("pipelined(", "range(", "a loop runs over serial(n) or pipelined(n), not `range`", "range(ceildiv(K, BK))", ""),
    # dtypes
    (
        "b: f16[BK", "b: bf16[BK",
        "`@` multiplies tiles of one element type, not f16[128, 64] and bf16[64, 256]", "a @ b", "cast one",
    ),
    ("a: f16[BM", "a: i8[BM", "`a` holds i8, the value is f16[128, 64]", "a = A[bx*BM, k*BK]", "i8(x) rounds, and saturates"),
    ("c += a @ b", "c += bf16(c) + f16(c)", "f16 and bf16 do not mix", "bf16(c) + f16(c)", "cast one of them"),
    # shapes
    ("a @ b", "a @ a", "the inner sizes of this product differ", "a @ a", ""),
    ("a @ b", "a @ v", "`@` multiplies tiles of two dimensions, not f32[128]", "v", ""),
    ("a @ b", "a @ b + a", "the shapes of f32[128, 256] and f16[128, 64] do not fit", "a @ b + a", ""),
    ("c += a @ b", "c += v", "the shapes of f32[128, 256] and f32[128] do not fit", "c += v", "v[:, None]"),
    ("c += a @ b", "c += c * v[None, :]", "f32[128, 256] and f32[_, 128] do not fit", "c * v[None, :]", "each row: v[:, None]"),
    ("c += a @ b", "c = a", "`c` takes 128 x 256 here, the value is f16[128, 64]", "c = a", ""),
    ("c += a @ b", "v = c", "`v` takes 128 here, the value is f32[128, 256]", "v = c", ""),
    ("c += a @ b", "v = rowsum(v[:, None])", "f32[128, _] has nothing to reduce", "rowsum(v[:, None])", ""),
    ("c += a @ b", "c += c[:, None]", "only a vector is repeated over rows or columns, not f32[128, 256]", "c[:, None]", ""),
    ("A[bx*BM, k*BK]", "A[bx*BM]", "`A` has 2 dimensions, not 1", "A[bx*BM]", ""),
    ("A[bx*BM, k*BK]", "A[bx:bx*BM, 0:BK]", "the length of this slice varies", "bx:bx*BM", "i:i + 64"),
    ("A[bx*BM, k*BK]", "A[0:BM, 64:64]", "this slice is empty: its length is 0", "64:64", ""),
    (
        "v: f32[BM]", "v: f32[2, BM, BN, 2, 2]",
        "a buffer has at most four dimensions, `v` has 5", "v: f32[2, BM, BN, 2, 2] = 0", "join the leading ones",
    ),
    ("a @ b", "(a @ b.T).T @ b", "the inner sizes of this product differ", "a @ b.T", ""),
    ("a @ b", "a @ b + v.T", "only a tile of two dimensions is transposed as a value", "v.T", "load it into a buffer first"),
    # windows
    (
        "k*BK]", "k*BK + BK]",
        "a window of `A` lies outside: k*64 + 64 takes the value 512", "A[bx*BM, k*BK + BK]", "begin inside",
    ),
    ("k*BK]", "k*BK - BK]", "a window of `A` lies outside: k*64 - 64 takes the value -64", "A[bx*BM, k*BK - BK]", ""),
    ("k*BK]", "512]", "a window of `A` lies outside: 512, dimension 1 has 512 elements", "A[bx*BM, 512]", ""),
    (
        "A[bx*BM, k*BK]", "A[bx*BM, 0:BK]",
        "`a` takes 128 x 64 here, the value is f16[64]", "a = A[bx*BM, 0:BK]",
        "A[i : i + 128, j : j + 64], or where the tile begins, A[i, j]",
    ),
    (
        "C[bx*BM, by*BN] = c", "C[bx*BM, 0:BN] = c",
        "`C` takes 256 here, the value is f32[128, 256]", "C[bx*BM, 0:BN] = c", "C[i : i + 128, j : j + 256]",
    ),
    (
        "C[bx*BM, by*BN] = c", "C[bx*BM, by*BN] = A[0, 0]",
        "the extent of this window of `C` is not known", "C[bx*BM, by*BN]", "give it",
    ),
    ("k*BK]", "k/2]", "`/` does not give an integer here", "k/2", "write //"),
    ("c += a @ b", "v[128] = 0", "this part of `v` lies outside: index 128, dimension 0 has 128 elements", "v[128]", ""),
    # reads and writes
    (": f32[BM, BN] = 0", ": f32[BM, BN]", "`c` is read before it is written", "c", "move the write up"),
    (
        "C[bx*BM, by*BN] = c", "A[bx*BM, by*BN] = c",
        "`A` is an input and cannot be written", "A[bx*BM, by*BN]", "name it among the results",
    ),
    ("C[bx*BM, by*BN] = c", "", "nothing is written to the output `C`", "C: f16[M, N]", ""),
    (
        "a = A[bx*BM, k*BK]", "a = f16(C[bx*BM:bx*BM + BM, 0:BK])",
        "the output `C` is read before anything", "C[bx*BM:bx*BM + BM, 0:BK]", "",
    ),
    # values and statements
    ("a @ b", "a @ b // 2", "`//` divides whole numbers of one type, or floats", "a @ b // 2", "cast x first"),
    ("c += a @ b", "let x = a", "`let` names a number or an index, not a tile", "a", "declare a buffer"),
    ("pipelined(ceildiv(K, BK))", "pipelined(0 - 1)", "the range of a loop is not below 0, as -1 is", "0 - 1", ""),
    (
        "c += a @ b", "c += a @ b for y in serial(k + 2) { c += a @ b }",
        "the range of a loop has to be known when the block starts, `k + 2` is not", "k + 2", "`k` is not",
    ),
    ("pipelined(ceildiv(K, BK))", "pipelined(4, stages=9)", "a loop has up to 8 stages, not 9", "9", ""),
    ("pipelined(ceildiv(K, BK))", "pipelined(4, stages=(1, 2))", "`stages` is one number", "(1, 2)", "pipelined(n, stages=2)"),
    ("pipelined(ceildiv(K, BK))", "serial(4, stages=2)", "`serial` has no argument called `stages`", "stages=2", ""),
    (
        "(ceildiv(M, BM), ceildiv(N, BN))", "ceildiv(M, BM)",
        "the grid names 2 variables for 1 extent", "grid (bx, by) = ceildiv(M, BM)", "",
    ),
    ("BK=64]", "BK=0]", "a size has to be at least 1, not 0", "0", ""),
    ("ceildiv(K, BK)", "K / BK", "a whole number, not 8.0", "K / BK", "write // for"),
    ("c += a @ b", "if c > 0 { c = a @ b }", "a branch cannot depend on the elements of a tile", "c > 0", "element by element"),
    ("c += a @ b", "c = np.exp(c)", "functions are called by their name alone", "(", "exp(x), not np.exp(x)"),
    ("c += a @ b", "c = c.dot(a, b)", "functions are called by their name alone", "(", "exp(x), not np.exp(x)"),
    ("c += a @ b", "c = c & c", "`&` takes i16, u16, i32, u32", "c & c", "cast it first: i32(x)"),
    ("pipelined", "pipeline", "runs over serial(n) or pipelined(n)", "pipeline(ceildiv(K, BK))", "for k in pipelined(...)"),
    ("pipelined", "range", "runs over serial(n) or pipelined(n)", "range(ceildiv(K, BK))", "for k in serial(...)"),
    ("BK=64]", "BK=1/2]", "an index or a size is a whole number, not 0.5", "1/2", "write // for"),
    ("BK=64]", "BK=64 // (M - 512)]", "division by zero", "64 // (M - 512)", ""),
    # not yet
    (
        "C[bx*BM, by*BN] = c", "if bx == 0 { C[bx*BM, by*BN] = c }",
        "`bx < 1` is neither always true nor true on the first trip alone", "if bx == 0 { C[bx*BM, by*BN] = c }", "",
    ),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "message", "place", "help"), FAULTS, ids=[f[2] for f in FAULTS])
def test_a_fault_is_named_with_its_place_and_a_way_out(old, new, message, place, help):
    text = changed(old, new)
    error = error_of(text)
    assert message in error.message
    assert marked(error, text) == place
    assert help in error.help


ROWS = """kernel rows[M=8, N=16](X: f32[M, N]) -> Y: f32[M, N] {
  shared x: f32[M, N], y: f32[M, N] = 0, m: f32[M] = 0, t: f32[N] = 0, l: f32[M] = 0
  x = X[0, 0]
  BODY
  Y[0, 0] = y
}
"""
NESTS = [
    ("parallel (i, j) in (M, N) { m[i] = m[i] + x[i, j] }", "every iteration of `j` writes the same"),
    ("parallel (i, j) in (M, N) { y[i, j] = x[j, i] }", "lies outside"),
    ("parallel (i, j) in (M, N) { if y[i, j] > 0 { y[i, j] = 1  x[i, j] = 2 } }", "this branch looks at `y` and changes it"),
    ("parallel (i, j) in (M, 8) { Y[i, j] = 0  Y[i, j + 7] = 0 }", "iterations of `j` meet at `Y`"),
    ("parallel (i, j) in (M, N) { y[i, j] = x[i, :] }", "an element loop takes one element at a time, not a slice"),
    ("parallel (i, j) in (M, N) { y[i, j] = x }", "inside an element loop `x` needs an index for each dimension"),
    ("parallel (i, j) in (M, N) { for k in serial(2) { y[i, j] = x[i, j] } }", "an element loop holds assignments only"),
    ("parallel (i, j) in M { y[i, j] = x[i, j] }", "this loop names 2 variables for 1 extents"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), NESTS, ids=[n[0] for n in NESTS])
def test_a_loop_over_elements_that_cannot_be_one_is_refused(body, message):
    assert message in error_of(ROWS.replace("BODY", body)).message


def test_tails_that_differ_by_trip_do_not_add_up():
    text = """kernel k[N=40](X: f32[4, N]) -> Y: f32[4, 16] {
      shared x: f32[4, 16], y: f32[4, 16] = 0
      for j in serial(ceildiv(N, 16)) { x = X[0, j*16]  y += x }
      Y[0, 0] = y }"""
    error = error_of(text)
    assert "the valid columns of `y` change from trip to trip" in error.message


def test_depths_of_a_product_that_end_at_different_places_are_both_named():
    text = """kernel k(X: f16[16, 40], Z: f16[44, 16]) -> Y: f16[16, 16] {
      shared x: f16[16, 64], z: f16[64, 16]  x = X[0, 0]  z = Z[0, 0]
      Y[0, 0] = x @ z }"""
    assert "different valid inner extents of this product: 40 and 44" in error_of(text).message


def test_a_buffer_that_is_set_only_behind_its_first_read_is_refused():
    text = GEMM.replace("c: f32[BM, BN] = 0", "c: f32[BM, BN]").replace("c += a @ b", "if k > 0 { c = 0 }  c += a @ b")
    assert error_of(text).message == "`c` is read before it is written"


def test_an_initialisation_on_the_first_trip_counts_as_a_write():
    text = GEMM.replace("c: f32[BM, BN] = 0", "c: f32[BM, BN]").replace("c += a @ b", "if k == 0 { c = 0 }  c += a @ b")
    check(load_text(text).instantiate())


def test_a_note_points_at_the_declaration():
    error = error_of(changed(": f32[BM, BN] = 0", ": f32[BM, BN]"))
    assert [text for text, _ in error.notes] == ["`c` is declared here, without a value"]


def test_a_kernel_that_was_not_read_from_text_is_checked_too():
    window = kn.Region("Z", (ix.ZERO,), (4,))
    kernel = kn.Kernel("k", (kn.Tensor("Y", F32, (4,), True),), (), (kn.Assign(window, kn.Number(0.0)),))
    with pytest.raises(TileError, match="unknown name `Z`"):
        check(kernel)


def test_a_size_without_a_value_says_how_to_give_one():
    with pytest.raises(TileError, match="the size `M` has no value") as caught:
        load_text(changed("M=512", "M")).instantiate()
    assert "--set M=512" in caught.value.help


def test_all_sizes_without_values_are_told_at_once():
    with pytest.raises(TileError, match="the sizes `M`, `N` have no values") as caught:
        load_text(changed("M=512, N=512", "M, N")).instantiate()
    assert "--set M=512 --set N=512" in caught.value.help


def test_a_size_that_the_kernel_does_not_have_is_refused():
    with pytest.raises(TileError, match="`gemm` has no size called `BKK`"):
        load_text(GEMM).instantiate({"BKK": 4})


def test_a_buffer_that_is_not_declared_is_told_once_with_its_shape():
    text = changed("c += a @ b", "c += a @ b  most = rowmax(c)  least = most")
    error = error_of(text)
    assert error.message == "unknown name `most`" and error.help.endswith("shared most: f32[128]")
    assert [e.message for e in error.others] == ["unknown name `least`"]
