"""Drawn inputs: sets by name that follow from a seed, and find what uniform numbers cannot."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.inputs import GIVEN, SETS, USUAL, Drawn, draw, drawn_sets, set_names
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.ir.reference_indices import most_of_indices
from tile_eg.ops.types import BF16, F16, F32, I8
from tile_eg.report.compare import compare
from tile_eg.search.compiler import Lowered, lower

EXAMPLES = Path(__file__).parent.parent / "examples"
FLOATS = [Tensor("A", F16, (64, 96), False), Tensor("B", BF16, (64, 96), False), Tensor("C", F32, (64, 96), False)]


def kernel(text: str) -> Kernel:
    return load_text(text, "k.tile").instantiate()


ADD = kernel("kernel k(A: f32[4, 32], B: f32[32]) -> C: f32[4, 32] { shared a: f32[4, 32], b: f32[32] a = A[0, 0] b = B[0] "
             "C[0, 0] = a + b[None, :] }")  # fmt: skip
EXP = kernel("kernel k(A: f16[64, 64], B: f16[64, 64]) -> C: f32[64, 64] { shared a: f16[64, 64], b: f16[64, 64] "
             "fragment c: f32[64, 64] a = A[0, 0] b = B[0, 0] c = a @ b C[0, 0] = exp(c) }")  # fmt: skip
INVERSE = kernel("kernel k(A: f32[16, 64]) -> C: f32[16, 64] { shared a: f32[16, 64] a = A[0, 0] C[0, 0] = 1 / a }")


TABLES = {
    "begins and lengths": "at: i32[6], n: i32[6]) -> Y: f32[100, 8] { grid b = 6 let begin = at[b] let end = at[b] + n[b]",
    "begins, and ends behind them": "at: i32[7]) -> Y: f32[100, 8] { grid b = 6 let begin = at[b] let end = at[b + 1]",
}
"""A tensor of 100 rows in six pieces of at most 24."""


def in_pieces(of: str) -> Kernel:
    return kernel(f"kernel k(X: f32[100, 8], {TABLES[of]} shared x: f32[24, 8] "
                  "x = X[begin : min(end, begin + 24), 0:8] Y[begin : min(end, begin + 24), 0:8] = x }")  # fmt: skip


@pytest.mark.parametrize("of", TABLES)
@pytest.mark.parametrize("seed", range(5))
def test_pieces_that_a_table_names_are_all_of_an_output_once(of: str, seed: int) -> None:
    arrays = drawn_sets(in_pieces(of), ["uniform"], seed)[0].arrays
    begins = arrays["at"][:6]
    lengths = arrays["n"] if "n" in arrays else np.diff(arrays["at"])
    assert (begins == np.concatenate(([0], np.cumsum(lengths)[:-1]))).all()
    assert lengths.sum() == 100 and (lengths >= 0).all() and (lengths <= 24).all() and len(set(lengths.tolist())) > 1


def test_pieces_are_not_drawn_where_one_of_their_tables_is_given() -> None:
    at = np.arange(0, 120, 20, dtype=np.int32) % 100
    arrays = drawn_sets(in_pieces("begins and lengths"), ["uniform"], 0, {"at": at})[0].arrays
    np.testing.assert_array_equal(arrays["at"], at)
    assert arrays["n"].sum() != 100


@pytest.mark.parametrize("name", SETS)
def test_a_set_follows_from_its_seed(name: str) -> None:
    first, again, other = (draw(FLOATS, name, seed)["C"] for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_arrays_have_the_shapes_and_types_of_their_tensors() -> None:
    tensors = [*FLOATS, Tensor("D", I8, (5,), False)]
    for name in SETS:
        drawn = draw(tensors, name, 0)
        assert {n: (a.shape, a.dtype.name) for n, a in drawn.items()} == {
            "A": ((64, 96), "float16"), "B": ((64, 96), "bfloat16"), "C": ((64, 96), "float32"), "D": ((5,), "int8"),
        }  # fmt: skip


@pytest.mark.parametrize("t", FLOATS, ids=lambda t: t.dtype.name)
def test_wide_inputs_hold_ties_zeros_subnormals_and_rows_of_one_sign(t: Tensor) -> None:
    x = draw([t], "wide", 0, top=256.0)[t.name].astype(np.float64)
    tiny = float(ml_dtypes.finfo(draw([t], "wide", 0)[t.name].dtype).smallest_normal)
    assert 200 < np.abs(x).max() <= 256
    assert ((x != 0) & (np.abs(x) < tiny)).any()
    assert (x == 0).all(axis=1).any() and (x == 0).any(axis=1).mean() > 0.4
    assert (x < -100).all(axis=1).any()
    largest_twice = (x == x.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert largest_twice[~(x == x[:, :1]).all(axis=1)].any()


def test_wide_bytes_reach_both_ends() -> None:
    x = draw([Tensor("D", I8, (64, 64), False)], "wide", 0)["D"]
    assert (x.min(), x.max()) == (-128, 127)


def test_special_numbers_leave_most_rows_without() -> None:
    x = draw([FLOATS[2]], "nan", 0)["C"]
    assert np.isnan(x).any() and np.isposinf(x).any() and np.isneginf(x).any()
    assert np.isfinite(x).all(axis=1).mean() > 0.5


def test_special_numbers_of_a_second_tensor_are_in_another_matrix() -> None:
    drawn = draw([Tensor(n, F32, (2, 8, 4), False) for n in "QK"], "nan", 0)
    assert [np.isfinite(drawn[n]).all(axis=(1, 2)).tolist() for n in "QK"] == [[False, True], [True, False]]


def test_a_given_array_is_in_every_set_and_the_others_stay_as_they_were() -> None:
    mine = np.ones((4, 32), np.float32)
    plain, mixed = drawn_sets(ADD, USUAL, 3), drawn_sets(ADD, USUAL, 3, {"A": mine})
    for a, b in zip(plain, mixed, strict=True):
        assert (b.arrays["A"] == 1).all()
        np.testing.assert_array_equal(a.arrays["B"], b.arrays["B"])
        np.testing.assert_array_equal(b.meant["C"].value, mine + b.arrays["B"])  # type: ignore[index]


def test_nothing_is_drawn_where_all_is_given() -> None:
    given = {"A": np.ones((4, 32), np.float32), "B": np.ones(32, np.float32)}
    assert [d.name for d in drawn_sets(ADD, USUAL, 0, given)] == [GIVEN]


def largest(drawn: Drawn) -> float:
    return max(float(np.abs(a.astype(np.float64)).max()) for a in drawn.arrays.values())


def test_wide_inputs_shrink_until_nothing_overflows() -> None:
    (wide,) = drawn_sets(EXP, ["wide"], 0)
    assert np.isfinite(wide.meant["C"].value).all()  # type: ignore[index]
    assert 1 < largest(wide) < largest(drawn_sets(ADD, ["wide"], 0)[0])


def test_tiles_that_are_left_out_do_not_shrink_them(monkeypatch: pytest.MonkeyPatch) -> None:
    tops: list[float] = []
    monkeypatch.setattr("tile_eg.inputs.draw", lambda *args: tops.append(args[-1]) or draw(*args))
    rows = kernel("kernel k(A: f32[64, 32]) -> C: f32[64, 32] { grid b = 4 shared a: f32[16, 32] a = A[b*16, 0] C[b*16, 0] = a }")
    drawn_sets(rows, ["wide"], 0, tiles=[0, 3])
    assert tops == [256.0]


def test_what_no_shrinking_removes_does_not_shrink_them() -> None:
    (wide,) = drawn_sets(INVERSE, ["wide"], 0)
    assert np.isinf(wide.meant["C"].value).any()  # type: ignore[index]
    assert largest(wide) > 100


@pytest.mark.parametrize(("text", "names"), [("wide", ("wide",)), ("wide, uniform,wide", ("wide", "uniform"))])
def test_sets_are_named_once(text: str, names: tuple[str, ...]) -> None:
    assert set_names(text) == names


@pytest.mark.parametrize(("text", "words"), [("wied", "called 'wied'(?s:.*)`wide`"), (",", "no inputs are named")])
def test_a_name_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(TileError) as caught:
        set_names(text)
    assert caught.match(words.partition("(")[0])
    assert "wide" in caught.value.help


# what they find: a kernel that is wrong, against the meaning of the right one

SIZES = {"softmax": {"M": 64, "N": 128}, "online_softmax": {"M": 64, "N": 1024}}
WRONG = {
    "a softmax without its maximum": ("softmax", "exp(x - m[:, None])", "exp(x)"),
    "a maximum that starts at 0": ("online_softmax", "= -inf", "= 0"),
}


def verdicts(right: Kernel, wrong: Lowered) -> dict[str, bool]:
    return {
        d.name: all(c.good for c in compare(wrong.run(d.arrays).outputs, d.meant or {}))
        for d in drawn_sets(right, USUAL, 0)
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part", "other"), WRONG.values(), ids=WRONG)
def test_wide_inputs_find_what_uniform_ones_do_not(name: str, part: str, other: str) -> None:
    text = (EXAMPLES / f"{name}.tile").read_text()
    assert part in text
    right, wrong = (load_text(t, "k.tile").instantiate(SIZES[name]) for t in (text, text.replace(part, other)))
    assert verdicts(right, lower(wrong)) == {"uniform": True, "wide": False}


AGAIN = ("flash_attention_causal", "flash_attention_rows", "gemm_exp", "gemm_transposed")
"""Examples that `make long` gives such numbers: the others have all their operations."""
ALL = [pytest.param(n, marks=[pytest.mark.long] * (n in AGAIN)) for n in sorted(e.stem for e in EXAMPLES.glob("*.tile"))]


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_example_takes_nan_and_infinities_as_it_is_meant_to(name: str) -> None:
    k = load_text((EXAMPLES / f"{name}.tile").read_text(), f"{name}.tile").instantiate()
    (special,) = drawn_sets(k, ["nan"], 1)
    assert [c for c in compare(lower(k).run(special.arrays).outputs, special.meant or {}) if not c.good] == []


def test_an_index_into_a_buffer_is_drawn_inside_of_it() -> None:
    text = """kernel counted[N=40](X: i32[N]) -> H: f32[16] {
      grid b = 1
      shared x: i32[N], h: f32[16] = 0
      x = X[0]
      for i in serial(N) { h[x[i]] += 1 }
      H[0] = h
    }"""
    assert most_of_indices(load_text(text).instantiate()) == {"X": 15}
