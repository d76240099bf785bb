"""Element types of expressions of whole tensors: NumPy's, with the numbers that NumPy computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tensor.test_tensor_meaning import kernel_of
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.reference import run_kernel

RANDOM = np.random.default_rng(5)
Array = np.ndarray[Any, Any]


def whole(dtype: str, *shape: int) -> Array:
    return RANDOM.integers(0 if dtype.startswith("u") else -9, 10, shape).astype(dtype)


F, N, J, B = RANDOM.uniform(-5, 5, (7, 33)).astype("float32"), whole("int32", 7, 33), whole("int8", 33), whole("uint8", 7, 33)
FULL, ALSO = (RANDOM.integers(-128, 128, shape).astype("int8") for shape in ((7, 33), (33,)))
C, D = F > 0, RANDOM.integers(0, 2, 33).astype(bool)
FORMS: dict[str, tuple[Callable[..., Any], list[Array]]] = {
    "floats towards zero": (lambda x: x.astype("int32"), [F]),
    "floats as bools": (lambda x: np.trunc(x).astype(bool), [F]),
    "a condition": (lambda x: x > 1, [F]),
    "short beside long": (lambda i, j: i + j, [N, J]),
    "without a sign beside one": (lambda b, j: b * j, [B, J]),
    "compared widths": (lambda i, j: i > j, [N, J]),
    "chosen widths": (lambda i, j: np.where(i > j, i, j), [N, J]),
    "bytes that wrap": (lambda i, j: (i + j) // 16, [FULL, ALSO]),
    "bytes that wrap and are compared": (lambda i, j: np.maximum(i * j, 3) * ((i - j) > 5), [FULL, ALSO]),
    "by a condition that is known": (lambda x: np.where(True, x, 0.0) + np.where(False, x, 1.0), [F]),
    "squares": (lambda i: i**2 + i**5 + i**0, [N]),
    "sums of bytes": (lambda b: np.sum(b, axis=0), [B]),
    "the largest bytes": (lambda b: np.max(b, axis=1), [B]),
    "means of whole numbers": (lambda i: np.mean(i, axis=1), [N]),
    "bools that differ": (lambda c, d: (c != d) & (c ^ d), [C, D]),
    "bools in order": (lambda c, d: (c < d) | (c == d), [C, D]),
    "products of bools": (lambda c, d: c * d, [C, D]),
    "a choice of bools": (lambda c, d, x: np.where(x > 1, c, d), [C, D, F]),
    "a bool beside a number": (lambda c: c == 1, [C]),
    "repeated conditions": (lambda d: np.broadcast_to(d, (7, 33)), [D]),
    "conditions repeated in rows": (lambda x: np.repeat(x > 1, 2, axis=1), [F]),
    "sums of what is repeated": (lambda d: np.sum(np.broadcast_to(d[:, None] * 2.0, (33, 5)), axis=1), [J]),
    "whole numbers beside a float": (lambda i: i * 2.0 + np.where(i > 1, i, 0.0), [N]),
    "whole numbers beside a whole one": (lambda i: np.maximum(i * 2, 1) - np.where(i > 1, i, 0), [N]),
    "extremes of numbers": (lambda x: np.min(np.pad(x, ((2, 1), (1, 0))), axis=1), [F]),
    "running sums of what is repeated": (lambda d: np.cumsum(np.broadcast_to(d * 1.0, (5, 33)), axis=0), [J]),
    "a value beside itself repeated": (lambda x: (np.broadcast_to(x, (3, 7, 33)) + 0 * x[:1]), [F]),
    "the largest of an axis that is not named": (lambda x: np.max(x, 0) - np.min(x, 1)[:, None], [F]),
    "conditions of whole numbers": (lambda i, j: np.logical_and(i, j) ^ np.logical_not(j) ^ np.logical_xor(i > 0, j), [N, J]),
    "conditions of floats": (lambda x, d: np.logical_or(np.trunc(x), d), [F, D]),
    "extremes of one number": (lambda x: np.max(np.sum(x), axis=-1) + np.min(x[0, 0]) + np.sum(x[0, 1] > 0), [F]),
    "how many are true": (lambda x: np.sum(x > 0, axis=1), [F]),
    "whether one of all is true": (lambda c: np.max(c, axis=0), [C]),
    "bools around bools": (lambda c: np.pad(c, ((2, 2), (0, 0)), constant_values=1), [C[:6]]),
    "bools beside bytes": (lambda c, j: np.concatenate([c, j[None]]), [C[:6], J]),
    "whole numbers around whole numbers": (lambda i: np.pad(i, 1, constant_values=1.7), [N]),
    "a whole number everywhere": (lambda i: np.full_like(i, -3.5), [N]),
    "true everywhere": (lambda c: np.full_like(c, 3), [C]),
    "halves everywhere": (lambda i, x: np.full_like(i.astype("float16"), x[0, 0]), [N, F]),
    "halves beside bytes": (lambda b, x: b * x, [B, F.astype("float16")]),
    "norms of bytes": (lambda j: np.linalg.norm(j, axis=1), [FULL]),
    "shifted whole numbers": (lambda i: np.left_shift(i, 2) + np.right_shift(i, 1), [N]),
    "the first place of all": (lambda i: np.argmax(i), [N]),
    "the first place in rows": (lambda i: np.argmin(i, axis=1, keepdims=True), [N]),
}


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", FORMS)
def test_an_expression_has_the_numbers_and_the_kind_of_numpys(name: str) -> None:
    form, arrays = FORMS[name]
    want = np.atleast_1d(form(*arrays))
    kernel = kernel_of(form, [a.shape for a in arrays], [a.dtype.name for a in arrays]).kernel
    out = kernel.tensors[-1]
    assert ("b" if out.truth else out.dtype.numpy[0]) in (want.dtype.kind, {"u": "i"}.get(want.dtype.kind))
    built = kernel.build(dict.fromkeys(kernel.open, 16)) if isinstance(kernel, OpenKernel) else kernel
    got = run_kernel(built, {t.name: a for t, a in zip(kernel.tensors, arrays, strict=False)})[out.name]
    assert got.shape == want.shape
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.few(3)
@pytest.mark.parametrize("name", FORMS)
def test_the_emitted_kernel_gives_the_same(name: str) -> None:
    form, arrays = FORMS[name]
    got = kernel_of(form, [a.shape for a in arrays], [a.dtype.name for a in arrays])(*arrays)
    np.testing.assert_allclose(got.astype(np.float64), np.atleast_1d(form(*arrays)).astype(np.float64), rtol=1e-5)
