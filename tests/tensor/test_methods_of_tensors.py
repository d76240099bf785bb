"""Methods and functions of whole tensors as torch spells them, and arrays that are there when a function is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg.language as T
from tests.tensor.test_tensor_meaning import drawn, kernel_of
from tile_eg.errors import TileError

X = drawn([(2, 6, 8)], "float32")[0]
LOWER, UPPER = np.tril(np.ones((6, 6))), np.triu(np.ones((6, 8), bool), 2)


def chosen(x: Any) -> Any:
    s = (x @ x.transpose(-2, -1)).masked_fill(LOWER == 0, float("-inf")) / math.sqrt(x.size(-1))
    return s.softmax(dim=-1)


def softmax_of_lower() -> Any:
    s = np.where(LOWER == 0, -np.inf, X @ X.swapaxes(1, 2) / math.sqrt(8))
    return np.exp(s) / np.exp(s).sum(-1, keepdims=True)


FORMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "a triangle that is there": (chosen, softmax_of_lower()),
    "elementwise methods": (lambda x: x.clamp(min=0).pow(2).sqrt().clamp_min(0.2).exp(), np.exp(np.maximum(X, 0.2))),
    "shapes": (lambda x: x.view(2, -1).unsqueeze(1).expand(-1, 3, -1).float(), np.repeat(X.reshape(2, 1, 48), 3, 1)),
    "parts": (lambda x: x.split(3, dim=1)[1] - x.chunk(2, dim=1)[0], X[:, 3:] - X[:, :3]),
    "extremes with their places": (lambda x: x.max(dim=1).values + x.min(dim=1, keepdim=True)[1][:, 0], X.max(1) + X.argmin(1)),
    "sizes": (lambda x: x.reshape(x.size(0), x.size // x.size(0)) + x.numel() + x.dim(), X.reshape(2, 48) + 96 + 3),
    "tensors of one number": (lambda x: x * T.full((8,), 2.0) + T.ones((6, 1)) - T.zeros((2, 1, 1)), X * 2 + 1),
    "arrays of positions": (lambda x: x + np.arange(8) * 3.0 + np.full((2, 1, 1), 5, np.int32), X + np.arange(8) * 3 + 5),
    "a method with an option of torch's": (lambda x: x.var(dim=1) + x.max(1, keepdim=True)[0][:, 0], X.var(1, ddof=1) + X.max(1)),
    "NumPy's method": (lambda x: x.var(1) + x.std(axis=1, ddof=1), X.var(1) + X.std(1, ddof=1)),
    "the last part": (lambda x: x.narrow(1, -2, 2) + x.split([4, 2], dim=1)[1], X[:, 4:] * 2),
    "a triangle of bools": (lambda x: T.where(UPPER, x, 0), np.where(UPPER, X, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_what_they_compute(name: str) -> None:
    form, want = FORMS[name]
    got = kernel_of(form, [X.shape], "float32")(X)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a transpose that NumPy and torch have otherwise": (lambda x: x[0].transpose(0, 1), "turns it in torch"),
    "an array of any numbers": (lambda x: x + X, "a tensor is not computed with ndarray"),
    "an option of an operator": (lambda x: np.add(x, x, where=x > 0), "`add` takes two values, and no `where`"),
    "an argument that is not there": (lambda x: x.split(3, of=1), "unexpected keyword argument 'of'"),
    "another meaning": (lambda x: x.where(x > 0, 0), "write T.where"),
    "64 bits": (lambda x: x.double(), "floats have 32 bits"),
    "the bits of floats": (lambda x: x.view("int32"), "would take the bits"),
    "sizes that do not add up": (lambda x: x.split([2, 3], dim=1)[1], "do not add up to the axis of 6"),
    "parts of nothing": (lambda x: x.split(0, dim=1)[0], "not split in parts of 0"),
    "no parts": (lambda x: x.chunk(0)[0], "not split in 0 parts"),
    "fewer axes": (lambda x: x.expand(8), "of 3 axes is not expanded to 1"),
    "elements behind the end": (lambda x: x.narrow(1, 4, 3), "has no 3 elements from 4 on"),
    "an array of 64 bits": (lambda x: x + np.full(8, 2**40), "whole numbers have 32 bits"),
    "an array of NaN": (lambda x: x + np.array([np.nan]), "a tensor is not computed with ndarray"),
    "a tensor for a number": (lambda x: T.full((8,), x[0, 0, 0]), "takes a shape, a number and a type"),
    "too many arguments": (lambda x: x + T.zeros((8,), "float32", "cpu"), "takes a shape and a type"),
    "no shape": (lambda x: x + T.full((8,)), "takes a shape, a number and a type"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    form, message = REFUSED[name]
    with pytest.raises(TileError) as raised:
        kernel_of(form, [X.shape], "float32")(X)
    assert message in str(raised.value)
    assert raised.value.span is not None


@pytest.mark.parametrize("dtype", ["float16", "uint8", "int16", "int32"])
def test_an_array_that_is_there_has_its_own_type(dtype: str) -> None:
    kernel = kernel_of(lambda x: x * np.full(8, 2, dtype) + np.array(1), [(3, 8)], dtype).kernel
    assert kernel.tensors[-1].dtype.numpy == dtype
