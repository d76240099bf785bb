"""Functions of NumPy's that are compositions of others compute what NumPy's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg.language as T
from tests.tensor.test_tensor_meaning import drawn, kernel_of
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.reference import run_kernel
from tile_eg.jit import TileKernel

X, V, S = (7, 33), (33,), (17, 17)
B, C = (3, 7, 16), (3, 16, 9)
Shapes = list[tuple[int, ...]]


def some(x: Any) -> Any:
    return np.where(x > 0, np.nan, x)


FORMS: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "log2": (lambda x: np.log2(x * x + 1) + np.log10(x * x + 1), [X]),
    "exp2": (lambda x: np.exp2(x) * np.tan(x), [X]),
    "log1p": (lambda x: np.log1p(x * 1e-4) * 1e4, [X]),
    "expm1": (lambda x: np.expm1(x * 1e-4) * 1e4 + np.expm1(x), [X]),
    "angles": (lambda x: np.arctan2(x, np.flip(x)) + np.hypot(x, 1 - x) + np.radians(x) * np.degrees(x), [X]),
    "cbrt": (lambda x: np.cbrt(x) + np.heaviside(x, 0.5) + np.sinc(x), [X]),
    "copysign": (lambda x, y: np.copysign(x, y - 0.1) + np.fmod(x * 9, y), [X, X]),
    "what is a number": (lambda x: np.nan_to_num(some(x), nan=2) + np.fmax(some(x), 0.3), [X]),
    "numbers for infinities": (
        lambda x: np.nan_to_num(np.where(x > 0, np.inf, -np.inf) * (x < 0.5), posinf=0.0, neginf=np.inf) == np.inf, [X]
    ),
    "sums of what is a number": (lambda x: np.nansum(some(x), 1) + np.nanmean(some(x), 1), [X]),
    "average": (lambda x, v: np.average(x, axis=1, weights=v + 2) + np.average(x, axis=1), [X, V]),
    "count_nonzero": (lambda x: np.count_nonzero(x > 0, axis=1) * 1.0, [X]),
    "methods of functions": (lambda x: np.add.reduce(x, axis=1) + np.maximum.reduce(x[:, :7]) * np.add.reduce(x[:, :7]), [X]),
    "vdot": (lambda x, y: np.vdot(x, y) + x, [X, X]),
    "tensordot": (lambda x, y: np.tensordot(x, y), [(5, 4, 6), (4, 6, 3)]),
    "tensordot of one axis": (lambda x, y: np.tensordot(x, y, axes=1), [(5, 4, 6), (6, 3)]),
    "clip": (lambda x: np.clip(x, -0.5, None) + np.clip(x, -0.1, 0.1), [X]),
    "logaddexp": (np.logaddexp, [X, V]),
    "logaddexp of infinities": (lambda x: np.logaddexp(np.where(x > 0, -np.inf, x), np.where(x > 0.5, -np.inf, 1)), [X]),
    "inner": (np.inner, [S, (5, 17)]),
    "inner of vectors": (np.inner, [V, V]),
    "arguments by their names": (
        lambda x: (
            np.tile(np.transpose(x, axes=(1, 0)), reps=(1, 2)) + np.broadcast_to(np.take(x, -1, axis=0)[:, None], shape=(33, 14))
        ),
        [X],
    ),
    "isfinite": (lambda x: np.isfinite(x / (x - x)) == np.isinf(x), [X]),
    "like others": (lambda x: np.full_like(x, 3) * np.ones_like(x) - np.zeros_like(x), [X]),
    "all": (lambda x: np.all(x > -0.8, axis=1) ^ np.any(x > 0.9, axis=1), [X]),
    "std": (lambda x: np.std(x, axis=1, ddof=1), [X]),
    "norm": (lambda x: np.linalg.norm(x, axis=1) + np.linalg.norm(x, ord=1, axis=1), [X]),
    "the largest magnitude": (lambda x: np.linalg.norm(x, np.inf, axis=0), [X]),
    "ptp": (lambda x: np.ptp(x, axis=0), [X]),
    "outer": (np.outer, [(7,), V]),
    "dot": (np.dot, [X, V]),
    "stack": (lambda x, y: np.stack([x, y], axis=1), [X, X]),
    "stacked along columns": (lambda x, y: np.stack([x, y], axis=-1) * 2, [X, X]),
    "vstack": (lambda x, v: np.vstack([x, v, np.hstack([v[3:], v[:3]])]), [X, V]),
    "flip": (lambda x: np.flip(x) + np.fliplr(x) * np.flip(x, 0), [X]),
    "roll": (lambda x: np.roll(x, 3, axis=1) - np.roll(x, -2, axis=0), [X]),
    "repeat": (lambda x: np.repeat(x, 2, axis=1), [X]),
    "tile": (lambda x: np.tile(x, (2, 3)), [X]),
    "pad": (lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=2) * 3, [X]),
    "a frame": (lambda x: np.pad(x, 1), [X]),
    "diff": (lambda x: np.diff(x, 2) + np.diff(x, axis=1)[:, 1:], [X]),
    "diagonal": (lambda x: np.diagonal(x, 2) * np.trace(x), [S]),
    "diag": (lambda v: np.diag(v) + np.diag(v[1:], 1) + np.diag(v[1:], -1), [(9,)]),
    "prod": (lambda x: np.prod(x[:, :7] + 1, axis=1) + np.prod(x[:, 8]), [X]),
    "split": (lambda x: np.multiply(*np.split(x[:, :32], 2, axis=1)), [X]),
    "axes": (lambda x: np.moveaxis(np.squeeze(np.expand_dims(x, 1)), 0, -1).reshape(-1), [X]),
    "mean of 3 x 3": (
        lambda x: sum(np.pad(x, ((0, 0), (1, 1), (1, 1)))[:, i : i + 7, j : j + 16] for i in range(3) for j in range(3)) / 9, [B],
    ),
    "products of matrices": (lambda a, b: np.einsum("bij,bjk->bik", a, b), [B, C]),
    "an axis turned": (lambda a, b: np.einsum("ij,kj->ki", a, b), [X, (9, 33)]),
    "heads": (lambda q, k: np.einsum("bqhd,bkhd->bhqk", q, k), [(2, 9, 3, 16), (2, 7, 3, 16)]),
    "two axes summed": (lambda x, w: np.einsum("bshd,hde->bse", x, w), [(2, 9, 3, 16), (3, 16, 5)]),
    "three operands": (lambda a, b, c: np.einsum("ij,jk,kl->il", a, b, c), [X, (33, 9), (9, 5)]),
    "a diagonal by letters": (lambda a: np.einsum("ii->i", a), [S]),
    "letters of one operand": (lambda a: np.einsum("ij->j", a), [X]),
    "products by letters": (lambda a, b: np.einsum("ij,ij->i", a, b), [X, X]),
}  # fmt: skip


@pytest.mark.few(8)
@pytest.mark.parametrize("name", FORMS)
def test_the_kernel_tree_computes_what_numpy_does(name: str) -> None:
    form, shapes = FORMS[name]
    arrays = drawn(shapes, "float32")
    kernel = kernel_of(form, shapes, "float32").kernel
    with np.errstate(all="ignore"):
        want = np.atleast_1d(form(*(a.astype(np.float64) for a in arrays)))
    for size in (16, 64):
        built = kernel.build(dict.fromkeys(kernel.open, size)) if isinstance(kernel, OpenKernel) else kernel
        got = run_kernel(built, {t.name: a for t, a in zip(kernel.tensors, arrays, strict=False)})[kernel.tensors[-1].name]
        assert got.shape == want.shape
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize("name", FORMS)
def test_the_emitted_kernel_computes_it_too(name: str) -> None:
    form, shapes = FORMS[name]
    arrays = drawn(shapes, "float32")
    with np.errstate(all="ignore"):
        want = np.atleast_1d(form(*(a.astype(np.float64) for a in arrays)))
    got = kernel_of(form, shapes, "float32")(*arrays)
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=2e-3, atol=1e-4)


@pytest.mark.slow
def test_the_largest_elements_and_their_places() -> None:
    (x,) = drawn([(9, 33)], "float32")
    x[2, 5] = x[2, 20] = 2
    values, places = kernel_of(lambda x: T.topk(x, 3), [x.shape], "float32")(x)
    at = np.argsort(-x, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(values, np.take_along_axis(x, at, 1))
    np.testing.assert_array_equal(places, at)


@pytest.mark.parametrize("dtype", ["int32", "int8"])
def test_the_remainder_of_whole_numbers_has_the_sign_of_the_first(dtype: str) -> None:
    x = np.array([np.iinfo(dtype).min, -7, -6, -1, 0, 1, 6, 7, np.iinfo(dtype).max], dtype)
    for by in (3, -3):
        np.testing.assert_array_equal(meant(lambda x, by=by: np.fmod(x, by), x), np.fmod(x, by))


def meant(form: Callable[..., Any], x: Any) -> Any:
    """What the tree of a kernel computes."""
    kernel = kernel_of(form, [x.shape], str(x.dtype)).kernel
    built = kernel.build(dict.fromkeys(kernel.open, 16)) if isinstance(kernel, OpenKernel) else kernel
    return run_kernel(built, {kernel.tensors[0].name: x})[kernel.tensors[-1].name]


@pytest.mark.parametrize(("dtype", "least"), [("float32", -np.inf), ("int32", -(2**31)), ("uint8", 0)])
def test_the_places_of_the_largest_elements_are_different_ones(dtype: str, least: float) -> None:
    x = np.full((2, 9), least).astype(dtype)
    x[0, 4] = 7
    np.testing.assert_array_equal(meant(lambda x: T.topk(x, 3)[1], x), [[4, 0, 1], [0, 1, 2]])


def test_the_largest_whole_numbers_are_exact() -> None:
    x = np.array([[2**31 - 2, 2**31 - 1, -(2**31) + 1]], np.int32)
    np.testing.assert_array_equal(meant(lambda x: T.topk(x, 2)[0], x), [[2**31 - 1, 2**31 - 2]])
    np.testing.assert_array_equal(meant(lambda x: T.topk(x, 2, largest=False)[0], x), [[-(2**31) + 1, 2**31 - 2]])


def test_products_of_bytes_have_32_bits() -> None:
    np.testing.assert_array_equal(meant(lambda x: T.prod(x, axis=1), np.full((2, 3), 99, np.uint8)), [99**3] * 2)


def test_more_of_the_largest_elements_are_taken_by_a_kernel_of_tiles() -> None:
    with pytest.raises(Exception, match="the 40 largest of 64 elements are not taken one by one"):
        kernel_of(lambda x: T.topk(x, 40)[0], [(9, 64)], "float32")


@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8"])
def test_single_whole_numbers_are_gathered(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(-(2**31), 2**31, (3, 40)).astype(dtype)
    at, row = rng.integers(0, 40, 7).astype(np.int32), rng.integers(0, 3, 7).astype(np.int32)
    kernel = kernel_of(lambda x, i, j: x[j, i], [x.shape, (7,), (7,)], [dtype, "int32", "int32"])
    np.testing.assert_array_equal(kernel(x, at, row), x[row, at])


SEVERAL = [
    "mean(X, axis=(0, -1), keepdims=1)", "log(sum(exp(X), axis=(0, 2,), keepdims=1))", "logsumexp(X, axis=(0, 2), keepdims=1)",
    "clip(X, low=0, max=0.5)", "full_like(X, value=3)",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("of", SEVERAL)
def test_text_names_several_axes_and_values(of: str) -> None:
    (x,) = (a.astype(np.float32) for a in drawn([(3, 7, 16)], "float32"))
    kernel = load_text("kernel k(X: f32[3, 7, 16]) -> O: f32[3, 7, 16] { O = X - " + of + " }")
    log_of_sums = np.log(np.sum(np.exp(x), axis=(0, 2), keepdims=True))
    wanted = {"mean": np.mean(x, (0, 2), keepdims=True), "clip": np.clip(x, 0, 0.5), "full_like": 3}
    want = x - wanted.get(of.split("(")[0], log_of_sums)
    np.testing.assert_allclose(TileKernel(kernel)(x), want, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_softmax_goes_along_several_axes() -> None:
    (x,) = drawn([(3, 7, 16)], "float32")
    kernel = kernel_of(lambda x: T.softmax(x, axis=(1, 2)), [x.shape], "float32")
    e = np.exp(x)
    np.testing.assert_allclose(kernel(x), e / np.sum(e, axis=(1, 2), keepdims=True), rtol=1e-4)


@pytest.mark.slow
def test_they_are_words_of_text_too() -> None:
    x, y = (a.astype(np.float32) for a in drawn([(7, 33), (7, 5)], "float32"))
    head = "kernel k(X: f32[7, 33], Y: f32[7, 5]) -> O: f32[7, 40], P: f32[2, 7, 17] "
    kernel = TileKernel(load_text(head + "{ z = concatenate(X, roll(Y, 2, axis=1), clip(Y[:, 3:], 0, 1), axis=1) "
                                         "O = z[::-1, ::-1]  s = X[:, ::2]  P = stack(s, square(s)) }"))  # fmt: skip
    o, p = kernel(x, y)
    z = np.concatenate([x, np.roll(y, 2, axis=1), np.clip(y[:, 3:], 0, 1)], axis=1)
    np.testing.assert_allclose(o, z[::-1, ::-1])
    np.testing.assert_allclose(p, np.stack([x[:, ::2], x[:, ::2] ** 2]), rtol=1e-6)


@pytest.mark.parametrize(
    ("axes", "message"), [(((0, 0), (0, 1)), "sums over axes of one size"), (1.5, "takes a number of axes, or two lists")]
)
def test_axes_of_tensordot_that_are_none_are_told(axes: Any, message: str) -> None:
    with pytest.raises(TileError, match=message):
        kernel_of(lambda x, y: np.tensordot(x, y, axes=axes), [(4, 5), (4, 4)], "float32").kernel  # noqa: B018


def test_weights_of_another_shape_are_told() -> None:
    with pytest.raises(TileError, match=r"weights of \[33\] are neither of the shape \[7, 33\] nor of one axis"):
        kernel_of(lambda x, v: np.average(x, weights=v), [X, V], "float32").kernel  # noqa: B018
