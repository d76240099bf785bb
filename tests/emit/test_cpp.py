"""Index expressions as C++: 64 bits where 32 may not do, the plain expression elsewhere, and the same value always."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emit.widths import Parser, Reader, Whole
from tile_eg.emit.ascend_c.cpp import Cpp, Part
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr

X, Y = ix.var("i"), ix.var("j")
BIG = 2**31
NAMES = {"i": (0, 9999), "j": (0, 70000), "k": (0, 3), "n": (0, 5 * 10**9)}


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (X * 65536, "i * 65536"),
        (X * 2**20, "static_cast<int64_t>(i) * 1048576"),
        (X * 2**40, "i * 1099511627776"),
        (X % 7 * 2**30, "static_cast<int64_t>(i % 7) * 1073741824"),
        (X * 2**17 + Y * 2**14, "static_cast<int64_t>(i) * 131072 + j * 16384"),
        (ix.const(BIG), "2147483648"),
        (X * 3 + BIG, "static_cast<int64_t>(i) * 3 + 2147483648"),
        (ix.minimum(X * 2**20, 5), "Min(static_cast<int64_t>(static_cast<int64_t>(i) * 1048576), static_cast<int64_t>(5))"),
        (BIG - 1 - X, "2147483647 - i"),
    ],
)
def test_what_may_leave_32_bits_is_computed_in_64(expression: Expr, text: str) -> None:
    assert Cpp(NAMES)(expression) == text


def test_a_sum_of_parts_that_fit_one_by_one_is_computed_in_64() -> None:
    assert Cpp(NAMES).summed([X * 2**17, Y * 2**14]) == "static_cast<int64_t>(i) * 131072 + j * 16384"
    picked = Part("(i == 0 ? 0 : 2000000000)", (0, 2 * 10**9))
    assert Cpp(NAMES).summed([picked, Y * 2**14]) == "static_cast<int64_t>((i == 0 ? 0 : 2000000000)) + j * 16384"


def test_a_constant_is_declared_as_wide_as_its_values() -> None:
    cpp = Cpp(NAMES)
    assert cpp.declared("x", X * 2**20, (0, 10**10)) == "const int64_t x = static_cast<int64_t>(i) * 1048576;"
    assert cpp.declared("x", X * 2**20 // 2**10, (0, 10**7)) == "const int32_t x = i * 1024;"
    narrow = cpp.declared("x", ix.minimum(X * 2**20, 64), (0, 64))
    assert narrow.startswith("const int32_t x = static_cast<int32_t>(Min(")


numbers = st.integers(1, 2**33)
leaves = st.sampled_from([ix.var(n) for n in NAMES]) | numbers.map(ix.const)


def grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    two = st.tuples(inner, inner)
    by = st.tuples(inner, st.integers(1, 2**20))
    return (
        two.map(lambda p: p[0] + p[1]) | by.map(lambda p: p[0] * p[1]) | by.map(lambda p: p[0] // p[1])
        | by.map(lambda p: p[0] % p[1]) | two.map(lambda p: ix.minimum(*p)) | two.map(lambda p: ix.maximum(*p))
    )  # fmt: skip


expressions = st.recursive(leaves, grown, max_leaves=6).filter(lambda e: ix.bounds(e, NAMES)[1] < 2**62)


def read(e: Expr, values: dict[str, tuple[int, int]]) -> tuple[Whole | None, list[str]]:
    """The text of e as C++ computes it, and what overflows in it, where the variables have these values."""
    reader = Reader(1)
    reader.scopes[0] = {n: Whole(*values[n], 64 if NAMES[n][1] >= BIG else 32) for n in NAMES}
    return Parser(reader, Cpp(NAMES)(e)).expression(), reader.overflows


@pytest.mark.slow
@given(expressions)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_no_part_of_an_expression_overflows(e: Expr) -> None:
    assert read(e, NAMES)[1] == []


@pytest.mark.slow
@given(expressions, st.fixed_dictionaries({n: st.integers(*r) for n, r in NAMES.items()}))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_the_text_means_the_expression(e: Expr, at: dict[str, int]) -> None:
    found, _ = read(e, {n: (v, v) for n, v in at.items()})
    assert found is not None and found.low == found.high == ix.evaluate(e, at)
