"""Mistakes in expressions of whole tensors: what is wrong, at its place, in both languages."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import InternalError, TileError
from tile_eg.frontend.python.tensors import TensorValue, word
from tile_eg.frontend.tensor import values
from tile_eg.frontend.tensor.functions import FUNCTIONS
from tile_eg.frontend.text import load_text
from tile_eg.ops.types import F32

HEAD = "kernel k[M=64, N=32](A: f16[M, N], B: f16[48, N], v: f16[M], C: i32[M, N], P: f16[2, M, N]) -> O: f16[M, N] "
TORN = "reshape(A[:, 0:30], 60, 32)"
STRIDED = "P[:, :, 0].T @ P[:, 0, :]"
MISTAKES = {
    "A + B": ("the shapes of f16[64, 32] and f16[48, 32] do not broadcast", "A + B", "sizes agree from the right"),
    "A @ B": ("the inner sizes of this product differ: f16[64, 32] @ f16[48, 32] has 32 and 48", "A @ B", "a @ b.T"),
    "foo(A)": ("unknown function `foo`", "foo(A)", ""),
    "softmax(A, axis=3)": ("f16[64, 32] has no axis 3", "softmax(A, axis=3)", "axes are 0 to 1, or -1 to -2"),
    "D + 1": ("unknown name `D`", "D", ""),
    "sum(A, axis=0, 1)": ("`sum` does not take these arguments", "sum(A, axis=0, 1)", "sum(x, axis=-1, keepdims=1)"),
    "where(A, 1, 0)": ("`where` chooses by a condition, not by f16[64, 32]", "where(A, 1, 0)", "where(x > 0, x, y)"),
    "A[:, 3:3]": ("this slice of an axis of 32 is empty", "A[:, 3:3]", ""),
    "A[99]": ("the index 99 lies outside of an axis of 64", "A[99]", ""),
    "A[0, 0, 0]": ("f16[64, 32] has 2 axes, not 3", "A[0, 0, 0]", ""),
    "reshape(A, 100, 2)": ("f16[64, 32] has 2048 elements, a shape of [100, 2] has others", "reshape(A, 100, 2)", ""),
    "sum(reshape(A[:, 0:30], 60, 32))": ("a reshape of 64 x 30 to 60 x 32 tears its rows", TORN, "before the call"),
    STRIDED: ("whose rows or columns do not lie side by side", "P: f16[2, M, N]", "before the call"),
    "topk(A, 33)": ("an axis of 32 elements has no 33 largest", "topk(A, 33)", "topk(x, 32) takes all of them"),
    "A.H": ("there is no `.H`", "H", "x.T and x.mT"),
    "P.T": ("`.T` of f16[2, 64, 32] would turn all its 3 axes round", "P.T", ".mT"),
    "C ** C": ("whole numbers have powers of 0 to 31, known ahead, not of i32[64, 32]", "C ** C", "f32(x) ** y"),
    "(A > 0) // 2": ("`//` divides numbers, not a condition[64, 32] by 2", "(A > 0) // 2", "select(x, 1, 0)"),
    "B": ("`O` is f16[64, 32], the value is f16[48, 32]", "B: f16[48, N]", ""),
    "exp(A > 0)": ("`exp` takes numbers, not a condition", "exp(A > 0)", "where(c, 1, 0)"),
    "A * (2 & 3)": ("`&` is not an operator of numbers", "2 & 3", ""),
    "reshape(A, A)": ("`reshape` takes whole numbers behind its first argument, not f16[64, 32]", "reshape(A, A)", ""),
    "(A > 0) + (A < 1)": ("`+` takes numbers, not a condition", "(A > 0) + (A < 1)", "where(c, 1, 0)"),
    "sort(A)": ("`sort` is there for tiles", "sort(A)", "with its tiles"),
    "cumsum(A)": ("`cumsum` of f16[64, 32] goes along an axis", "cumsum(A)", "cumsum(x, axis=-1)"),
    "einsum(A, B)": ("`einsum` takes the letters of axes first", "einsum(A, B)", "a @ b"),
    "argsort(A)": ("unknown function `argsort`", "argsort(A)", "sort(x)"),
    "split(A, 2)": ("`split` gives several values", "split(A, 2)", "x[:, 0:8]"),
    "concatenate(A, B, axis=1)": ("f16[64, 32] and f16[48, 32] do not lie one behind the other", "concatenate(A, B, axis=1)", ""),
    "repeat(A, 0, 1)": ("`repeat` takes a number of times from 1 on", "repeat(A, 0, 1)", ""),
    "diff(A, 40)": ("`diff` of f16[64, 32] is taken 0 to 31 times", "diff(A, 40)", ""),
    "A[B]": ("an index is i32, not f16[48, 32]", "A[B]", "i32"),
    "std(A, axis=1, keepdims=(1, 0))": ("`keepdims` of `std` is a whole number", "std(A, axis=1, keepdims=(1, 0))", "keepdims=1"),
    "clip(A, low=(0, 1))": ("several numbers are axes, and here one value is taken", "(0, 1)", ""),
    "sum(A, axis=(0, B))": ("`axis` is a whole number, not f16[48, 32]", "B", ""),
    "~A": ("`~` turns conditions and the bits of whole numbers", "~A", "~(x > 0)"),
}


@pytest.mark.parametrize("body", MISTAKES)
def test_a_mistake_in_text_is_told_at_its_place(body: str) -> None:
    message, place, help = MISTAKES[body]
    text = HEAD + "{ O = " + body + " }"
    with pytest.raises(TileError) as caught:
        load_text(text, "k.tile").instantiate()
    error = caught.value
    assert message in error.message
    assert error.span is not None
    assert text[error.span.column - 1 : error.span.end_column - 1] == place
    assert help in error.help


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = A + 1", "nothing is written to the output `O`"),
        ("A = A + 1", "`A` is an input and cannot be written"),
        ("O += A", "`O` is read before it is written"),
        ("M = A", "`M` is a number, not a tensor"),
    ],
)
def test_what_is_written_has_to_be_an_output_or_new(body: str, message: str) -> None:
    with pytest.raises(TileError, match=message):
        load_text(HEAD + "{ " + body + " }", "k.tile").instantiate()


def test_sizes_of_tensors_are_not_left_to_the_search() -> None:
    with pytest.raises(TileError, match="the search finds sizes of tiles"):
        load_text(HEAD + "{ O = A }").instantiate({"M": "auto"})


def test_a_size_that_is_neither_the_kernels_nor_a_tiles_is_unknown() -> None:
    with pytest.raises(TileError, match="no size called `BX`") as caught:
        load_text(HEAD + "{ O = A * v[:, None] }").instantiate({"BX": 3})
    assert caught.value.help == "known here: BM, BN, M, N"


X = T.Tensor((8, 16), "float16")


def branches(x: X) -> Any:
    return x if x > 0 else -x


def goes_through(x: X) -> Any:
    return sum(row for row in x)


def changes(x: X) -> Any:
    x[0] = 1
    return x


def mixes(x: X) -> Any:
    return x + np.array([1, 5, 2])


def adds(x: X) -> Any:
    return x + x.T


def forgets(x: X) -> Any:
    x + x  # noqa: B018


def launches(x: X) -> Any:
    with T.Kernel(1) as i:
        T.copy(x[i, 0], x[i, 0])


def unbound(x: X) -> Any:
    return torch.relu(x)  # noqa: F821  # type: ignore[name-defined]


def doubled(x: X) -> Any:
    return x.double()


def of_letters(x: X) -> Any:
    return np.einsum("ij,jk->ik", x, x)


def of_missing_letters(x: X) -> Any:
    return np.einsum("ij,jk->il", x, x)


def rolled(x: X) -> Any:
    return np.roll(x, (1, 2), axis=(0, 1))


def turned(x: X) -> Any:
    return np.expand_dims(x, (0, 1))


def at_a_list(x: X) -> Any:
    return x[[0, 2]]


def of_a_type(x: X) -> Any:
    return np.sum(x, axis=0, dtype=np.float16)


def of_an_odd_option(x: X) -> Any:
    return T.softmax(x, axiss=0)


def sorted_by(x: X) -> Any:
    return np.argsort(x)


def wide(x: X) -> Any:
    return x.astype(int)


PYTHON = {
    unbound: ("unknown name `torch`", "bound above"),
    doubled: ("a tensor has no attribute double", 'x.astype("float32")'),
    of_letters: ("`einsum` 'ij,jk->ik': `j` is 16 and 8", ""),
    of_missing_letters: ("`einsum` 'ij,jk->il' names each axis of the result once, and one that an operand has", "bij,bjk->bik"),
    rolled: ("`shift` of `roll` is a whole number, not (1, 2)", "roll(x, 1, axis=0)"),
    turned: ("`axis` of `expand_dims` is a whole number, not (0, 1)", ""),
    at_a_list: ("an index of a tensor is a whole number or an array, not a list", "T.stack([x[0], x[2]])"),
    of_a_type: ("`sum` takes no `dtype`", "cast"),
    of_an_odd_option: ("`softmax` takes no `axiss`", "softmax(x, axis=-1)"),
    sorted_by: ("`argsort` is not there", "sort(x)"),
    wide: ("unknown dtype int", "float16"),
    launches: ("launches launches blocks, and does not stand under @T.prim_func", "write @T.prim_func below @tile_eg.jit"),
    forgets: ("forgets returns nothing", "return y"),
    branches: ("a branch cannot depend on the elements of a tensor", "T.where"),
    goes_through: ("is not gone through row by row", "T.sum"),
    changes: ("a value of a tensor is not changed in part", "T.where"),
    mixes: ("a tensor is not computed with ndarray", "pass arrays as arguments"),
    adds: ("the shapes of f16[8, 16] and f16[16, 8] do not broadcast", "sizes agree"),
}


def test_a_size_by_a_name_alone_is_told_how_it_becomes_one() -> None:
    def named(x: T.Tensor(("H", 16), "float16")) -> Any:  # noqa: F821
        return x

    with pytest.raises(TileError, match="not str 'H'") as caught:
        tile_eg.jit(named)
    assert caught.value.help == 'a size that each call tells is H = T.symbolic("H") before the function, and H here'


@pytest.mark.parametrize("function", PYTHON, ids=lambda f: f.__name__)
def test_a_mistake_in_python_is_told_at_its_line(function: Any) -> None:
    message, help = PYTHON[function]
    with pytest.raises(TileError) as caught:
        tile_eg.jit(function)
    error = caught.value
    assert message in error.message
    assert help in error.help
    first = function.__code__.co_firstlineno
    assert error.span is not None and error.span.file == __file__ and error.span.line == first + 1
    assert error.source.splitlines()[first - 1].startswith(f"def {function.__name__}")


def test_a_function_that_returns_has_no_out_idx() -> None:
    with pytest.raises(TileError, match="returns its outputs: out_idx"):
        tile_eg.jit(adds, out_idx=[-1])


def test_the_words_of_whole_tensors_say_where_they_belong() -> None:
    with pytest.raises(TileError, match=r"T.softmax is about whole tensors, not tiles"):
        T.softmax(3)


def test_a_declared_result_has_to_be_what_is_returned() -> None:
    def wrong(x: X) -> T.Tensor((8, 8), "float32"):
        return x * 2

    with pytest.raises(TileError, match=r"`out` is f32\[8, 8\], the value is f16\[8, 16\]"):
        tile_eg.jit(wrong)


def test_a_size_that_no_argument_has_is_told_where_calls_would_give_it() -> None:
    n = T.symbolic("n")

    def wrong(x: X) -> Any:
        return x + T.arange(n)

    with pytest.raises(TileError, match="n: a size known at each call") as caught:
        tile_eg.jit(wrong)
    assert "give an argument a shape with it" in caught.value.help


def test_a_list_of_results_is_returned_like_a_tuple_of_them() -> None:
    def right(x: X) -> Any:
        return [x * 2, x + 1]

    def of_a_loop(x: X) -> Any:
        return [x * n for n in (1, 2)]

    assert [t.name for t in tile_eg.jit(right).kernel.tensors if t.output] == ["out", "out_1"]
    assert [t.name for t in tile_eg.jit(of_a_loop).kernel.tensors if t.output] == ["out_0", "out_1"]


def test_several_results_of_any_size_stand_in_the_last_line() -> None:
    M = T.symbolic("M")

    def wrong(x: T.Tensor((M, 16), "float16")) -> Any:
        return [x * n for n in (1, 2)]

    with pytest.raises(TileError, match="wrong returns 2 values where its last line has 1"):
        tile_eg.jit(wrong)(np.zeros((3, 16), np.float16))


def test_types_may_be_given_behind_the_definition() -> None:
    def made(rows: int) -> Any:
        def summed(x, y):  # type: ignore[no-untyped-def]
            return np.sum(x, axis=1) + y

        summed.__annotations__ = {"x": T.Tensor((rows, 8), "float32"), "y": T.Tensor((rows,), "float32")}
        return tile_eg.jit(summed)

    assert [made(n).kernel.tensors[0].shape for n in (3, 5, 3)] == [(3, 8), (5, 8), (3, 8)]


def test_arguments_of_any_number_are_refused() -> None:
    def several(*xs: X) -> Any:
        return xs[0]

    with pytest.raises(TileError, match="`xs` stands for any number of arguments"):
        tile_eg.jit(several)


def test_a_fault_of_the_compiler_is_not_the_authors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "reduce", None)

    def blameless(x: X) -> Any:
        return T.softmax(x, 0)

    with pytest.raises(InternalError, match="this is a fault of tile_eg") as caught:
        tile_eg.jit(blameless)
    assert f"{__file__}:{blameless.__code__.co_firstlineno + 1}" in str(caught.value)


def test_what_the_authors_own_python_raises_is_left_as_it_is() -> None:
    def own(x: X) -> Any:
        return x * [1, 2][5]

    with pytest.raises(IndexError):
        tile_eg.jit(own)


def test_a_mistake_in_a_function_of_numpys_is_told_where_it_is_called() -> None:
    def elementwise(x: X) -> Any:
        return np.vectorize(lambda y: y * 2)(x)

    with pytest.raises(TileError, match="not gone through row by row") as caught:
        tile_eg.jit(elementwise)
    assert caught.value.span.file == __file__


ODD = (None, 2, -1, 1.5, "a", (0, 1), [2, 3], float("nan"), True, {"a": 1}, int)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_odd_arguments_of_a_function_are_mistakes_and_no_faults(name: str) -> None:
    x = TensorValue(values.tensor("x", (4, 6), F32))
    for args in ((), (x,), (x, x), *((x, odd) for odd in ODD), *((odd,) for odd in ODD), *((x, 1, odd) for odd in ODD)):
        for options in ({}, {"axis": "a"}, {"axis": (0, 1)}, {"foo": 1}):
            with suppress(TileError):
                word(name, args, options)


def test_a_tensor_is_rounded_to_whole_numbers_alone() -> None:
    def rounded(x: X) -> Any:
        return round(x, 2)

    with pytest.raises(TileError, match="`round` rounds to whole numbers") as caught:
        tile_eg.jit(rounded)
    assert caught.value.help == "write round(x * 100) / 100"
