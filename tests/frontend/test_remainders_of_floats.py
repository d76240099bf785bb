"""Quotients and remainders of floats, and floats that are stored as whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.python.written import prim_func
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.reference import run_kernel
from tile_eg.search.compiler import check_kernel

X = np.array([-7.5, -3.3, -0.1, 0.0, -1e-9, 2.9999998, 3.0, 7.5, 100.25, -100.25] * 8, np.float32)
DIVISORS = (3.0, -3.0, 0.5, -2.0, 0.3, 0.9)


def means(value: str, x: np.ndarray = X, of: str = "f32", gives: str = "f32") -> np.ndarray:
    text = f"kernel k(X: {of}[80]) -> Y: {gives}[80] {{ shared x: {of}[80], y: {gives}[80] x = X[0] y = {value} Y[0] = y }}"
    kernel = load_text(text).instantiate()
    check_kernel(kernel)
    return run_kernel(kernel, {"X": x})["Y"]


def apart(x: np.ndarray, y: np.ndarray, by: float) -> np.ndarray:
    """How far apart remainders are: 0 and the divisor are neighbours."""
    far = np.abs(x.astype(np.float64) - y)
    return np.minimum(far, abs(by) - far)


@pytest.mark.parametrize("by", DIVISORS)
def test_a_remainder_has_the_sign_of_the_divisor_and_is_smaller(by: float) -> None:
    found = means(f"x % {by}" if by > 0 else f"x % ({by})")
    assert (apart(found, X % np.float32(by), by) < 1e-5).all()
    assert (found * np.sign(by) >= 0).all() and (abs(found) < abs(by)).all()


@pytest.mark.parametrize("by", DIVISORS)
def test_a_quotient_is_rounded_down(by: float) -> None:
    assert (means(f"x // ({by})") == np.floor(X / np.float32(by))).all()


def test_short_floats_are_divided_in_f32() -> None:
    x = X.astype(np.float16)
    assert (apart(means("x % 0.3", x, "f16", "f16"), x.astype(np.float32) % np.float32(0.3), 0.3) < 1e-3).all()


@pytest.mark.parametrize(("value", "meaning"), [
    ("round(x)", np.rint), ("-floor(x) + 2", lambda x: 2 - np.floor(x)), ("sign(x)", np.sign),
    ("max(min(trunc(x), 9), -9)", lambda x: np.clip(np.trunc(x), -9, 9)), ("x // 3", lambda x: np.floor(x / 3)),
    ("select(x > 0, ceil(x), 0)", lambda x: np.where(x > 0, np.ceil(x), 0)),
])  # fmt: skip
def test_floats_without_a_fraction_are_stored_as_whole_numbers(value: str, meaning: object) -> None:
    assert (means(value, gives="i8") == meaning(X).astype(np.int8)).all()  # type: ignore[operator]


@pytest.mark.parametrize("value", ["x", "round(x) * 0.5", "floor(x) / 2", "select(x > 0, x, 0)", "round(x) + x"])
def test_those_that_may_have_one_are_cast_by_their_author(value: str) -> None:
    with pytest.raises(TileError, match="`y` holds i8, the value is f32"):
        means(value, gives="i8")


@pytest.mark.parametrize(("number", "way"), [
    ("3000000000", "-1294967296 has the same bits"), ("5000000000", "no type has more than 32 bits"),
    ("0.25", "cast x first"), ("-2147483649", "no type has more than 32 bits"),
])  # fmt: skip
def test_a_number_that_no_type_holds_is_told_with_what_to_write(number: str, way: str) -> None:
    with pytest.raises(TileError, match="is no i32, which holds whole numbers") as caught:
        means(f"x + ({number})", X.astype(np.int32), "i32", "i32")
    assert way in caught.value.help


def test_a_number_beyond_a_byte_is_computed_with_after_a_cast() -> None:
    with pytest.raises(TileError, match="200 is no i8") as caught:
        means("x // 200", X.astype(np.int8), "i8", "i8")
    assert caught.value.help == "cast x first: i32(x); -56 has the same bits"


def test_numbers_may_be_written_by_their_bits() -> None:
    assert (means("(x & 0xF0) | 0b11", X.astype(np.int32), "i32", "i32") == (X.astype(np.int32) & 0xF0 | 3)).all()


def test_letters_behind_a_number_are_told_there() -> None:
    with pytest.raises(TileError, match="1.5f is no number") as caught:
        means("x * 1.5f")
    assert caught.value.span is not None and caught.value.help == "1.5; a type stands before it: f32(1.5)"


def test_c_s_remainder_has_the_sign_of_what_is_divided() -> None:
    import tile_eg

    text = "@T.prim_func\ndef f(X: T.Tensor((80,), 'float32'), Y: T.Tensor((80,), 'float32')):\n  with T.Kernel(1) as c:\n" \
           "    x = T.alloc_shared((80,), 'float32')\n    T.copy(X, x)\n    x[:] = T.fmod(x, -0.7)\n    T.copy(x, Y)\n"
    kernel = tile_eg.compile(prim_func(text)).kernel
    np.testing.assert_allclose(run_kernel(kernel, {"X": X})["Y"], np.fmod(X, np.float32(-0.7)), atol=1e-5)


@pytest.mark.parametrize(
    ("number", "help"), [("0xG", "digits stand behind it: 0x1f"), ("1_000", "digits stand together: 1000"), ("2f", "f32(2)")]
)
def test_letters_behind_a_number_are_told_with_what_to_write(number: str, help: str) -> None:
    with pytest.raises(TileError, match=f"{number} is no number") as caught:
        means(f"x * {number}")
    assert help in str(caught.value.help)


def test_a_number_that_may_be_chosen_is_one_of_the_type_that_it_fills() -> None:
    with pytest.raises(TileError, match="1.5 is no i8"):
        means("select(x > 0, 1.5, 0)", gives="i8")
