"""Windows that move along axes are NumPy's, and convolutions of them torch's, written out here in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.tensor.test_tensor_meaning import assert_near, drawn, kernel_of
from tile_eg.errors import TileError
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.reference import run_kernel

Shape = tuple[int, ...]
views = np.lib.stride_tricks.sliding_window_view


def convolution(x: Any, w: Any, b: Any = 0, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1) -> Any:
    """The sum over the channels of a group and the elements of each window, in any number of dimensions."""
    rank = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(padding, padding)] * rank])
    moved = views(x, [dilation * (n - 1) + 1 for n in w.shape[2:]], axis=tuple(range(2, 2 + rank)))
    moved = moved[(..., *[slice(None, None, dilation)] * rank)][(slice(None), slice(None), *[slice(None, None, stride)] * rank)]
    moved = moved.reshape(x.shape[0], groups, -1, *moved.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    letters = "dhw"[:rank] + "ijk"[:rank], "dhw"[:rank], "ijk"[:rank]
    y = np.einsum(f"ngc{letters[0]},goc{letters[2]}->ngo{letters[1]}", moved, w)
    return y.reshape(x.shape[0], -1, *y.shape[3:]) + (b if np.isscalar(b) else b.reshape(-1, *[1] * rank))


CONVOLUTIONS: dict[str, tuple[str, list[Shape], dict[str, int]]] = {
    "rows": ("conv1d", [(2, 8, 21), (5, 8, 3)], {}),
    "images": ("conv2d", [(2, 8, 9, 11), (5, 8, 3, 2)], {}),
    "volumes": ("conv3d", [(1, 8, 4, 5, 6), (5, 8, 3, 3, 3)], {"padding": 1}),
    "zeros around": ("conv2d", [(2, 8, 9, 11), (5, 8, 3, 3), (5,)], {"padding": 1}),
    "in steps": ("conv2d", [(1, 8, 9, 11), (5, 8, 3, 3)], {"padding": 1, "stride": 2}),
    "with gaps": ("conv1d", [(2, 8, 21), (5, 8, 3)], {"padding": 2, "dilation": 2}),
    "zeros alone": ("conv1d", [(2, 8, 21), (5, 8, 3)], {"padding": 4}),
    "in groups": ("conv2d", [(1, 8, 9, 11), (6, 4, 3, 3)], {"groups": 2}),
    "channel by channel": ("conv2d", [(1, 8, 9, 11), (8, 1, 3, 3), (8,)], {"groups": 8, "padding": 1}),
    "two of each channel": ("conv1d", [(2, 4, 21), (8, 1, 3)], {"groups": 4}),
    "one channel": ("conv2d", [(2, 1, 9, 11), (5, 1, 3, 3)], {"padding": 1}),
    "long windows": ("conv2d", [(1, 3, 20, 20), (5, 3, 7, 7)], {"stride": 2, "padding": 3}),
}


def agrees(form: Callable[..., Any], want: Callable[..., Any], shapes: list[Shape]) -> None:
    """In the sequential meaning, with tiles of 16."""
    kernel, arrays = kernel_of(form, shapes, "float32").kernel, drawn(shapes, "float32")
    built = kernel.build(dict.fromkeys(kernel.open, 16)) if isinstance(kernel, OpenKernel) else kernel
    out = run_kernel(built, {t.name: a for t, a in zip(kernel.tensors, arrays, strict=False)})
    assert_near(out[kernel.tensors[-1].name], want(*(a.astype(np.float64) for a in arrays)), 1e-4)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_is_the_sum_over_its_windows(name: str) -> None:
    word, shapes, ways = CONVOLUTIONS[name]
    agrees(lambda *of: getattr(T, word)(*of, **ways), lambda *of: convolution(*of, **ways), shapes)


@pytest.mark.parametrize("f", [np.sum, np.max], ids=["sums", "the largest"])
def test_windows_are_reduced_as_those_of_numpy(f: Callable[..., Any]) -> None:
    agrees(lambda x: f(views(x, 5, axis=1), axis=-1), lambda x: f(views(x, 5, axis=1), axis=-1), [(3, 40)])


def test_windows_along_two_axes_have_two_more_behind() -> None:
    agrees(lambda x: views(x, (3, 2)), lambda x: views(x, (3, 2)), [(9, 20)])


def test_zeros_lie_around_what_is_computed() -> None:
    """And not around what it is computed of: the sigmoid of 0 is a half."""
    shapes: list[Shape] = [(2, 8, 21), (5, 8, 3)]
    want = lambda x, w: convolution(1 / (1 + np.exp(-x)), w, padding=1)  # noqa: E731
    agrees(lambda x, w: T.conv1d(T.sigmoid(x), w, padding=1), want, shapes)


def test_zeros_lie_around_a_part_of_an_input() -> None:
    want = lambda x, w: convolution(x[:, :, 5:14], w, padding=1)  # noqa: E731
    agrees(lambda x, w: T.conv1d(x[:, :, 5:14], w, padding="same"), want, [(2, 8, 21), (5, 8, 3)])


@pytest.mark.parametrize("places", [13, 16, 67])
def test_a_sum_over_places_ends_where_they_do(places: int) -> None:
    """Zeros lie beyond the last place, too, and exp(0) is no 0."""
    want = lambda x, w: np.exp(convolution(x, w, padding=1)).sum(-1)  # noqa: E731
    agrees(lambda x, w: T.exp(T.conv1d(x, w, padding=1)).sum(-1), want, [(2, 8, places), (6, 8, 3)])


OVER_PLACES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "the largest": (lambda y: T.max(y, axis=2), lambda y: y.max(2)),
    "softmax": (
        lambda y: T.exp(y) / T.sum(T.exp(y), axis=2, keepdims=True), lambda y: np.exp(y) / np.exp(y).sum(2, keepdims=True)
    ),
    "deviations": (lambda y: np.var(y, axis=2), lambda y: y.var(2)),
    "places": (lambda y: np.argmax(y, axis=2) + 0.0, lambda y: y.argmax(2)),
    "products with itself": (lambda y: y @ y.transpose(0, 2, 1), lambda y: y @ y.transpose(0, 2, 1)),
    "products of two": (lambda y: np.einsum("ncl,ncl->nc", y, np.exp(y)), lambda y: (y * np.exp(y)).sum(2)),
}


@pytest.mark.parametrize("name", OVER_PLACES)
def test_what_goes_over_all_places_ends_where_they_do(name: str) -> None:
    ours, numpys = OVER_PLACES[name]
    want = lambda x, w: numpys(convolution(x, w, padding=1))  # noqa: E731
    agrees(lambda x, w: ours(T.conv1d(x, w, padding=1)), want, [(2, 4, 13), (6, 4, 3)])


@pytest.mark.slow
def test_places_beyond_the_last_one_are_left_out_by_the_text_too() -> None:
    @tile_eg.jit
    def largest(x: T.Tensor((2, 4, 13), "float32"), w: T.Tensor((6, 4, 3), "float32")):
        return T.max(T.conv1d(x, w, padding=1), axis=2)

    x, w = drawn([(2, 4, 13), (6, 4, 3)], "float32")
    np.testing.assert_allclose(largest(x, w), convolution(x, w, padding=1).max(2), atol=1e-5)


def test_one_image_has_no_batch() -> None:
    want = lambda x, w: convolution(x[None], w, padding=1)[0]  # noqa: E731
    agrees(lambda x, w: T.conv2d(x, w, None, 1, 1), want, [(8, 9, 11), (5, 8, 3, 3)])


@pytest.mark.slow
def test_a_convolution_runs_in_the_simulator() -> None:
    @tile_eg.jit
    def conv(x: T.Tensor((2, 16, 14, 18), "float16"), w: T.Tensor((32, 16, 3, 3), "float16"), b: T.Tensor((32,), "float32")):
        return T.maximum(T.conv2d(x, w, b, padding=1), 0)

    x, w = drawn([(2, 16, 14, 18), (32, 16, 3, 3)], "float16")
    (b,) = drawn([(32,)], "float32")
    want = np.maximum(convolution(*(a.astype(np.float64) for a in (x, w, b)), padding=1), 0)
    np.testing.assert_allclose(conv(x, w, b), want, atol=2e-3)


MISTAKES: dict[str, tuple[Callable[..., Any], list[Shape], str]] = {
    "channels": (T.conv1d, [(2, 8, 21), (5, 4, 3)], "of 8 channels in 1 group: .* have 4 a group"),
    "dimensions": (T.conv1d, [(2, 8, 9, 11), (5, 8, 3)], r"takes images \[N, C, W\]"),
    "a long window": (lambda x: T.sliding_window_view(x, 50, axis=0), [(40, 8)], "of 50 does not move along an axis of 40"),
    "axes": (lambda x: T.sliding_window_view(x, (3, 3)), [(4, 8, 8)], "go along 2 axes, not along 3"),
    "an axis twice": (lambda x: T.sliding_window_view(x, (2, 3), axis=(1, -1)), [(7, 33)], "two windows along one axis"),
    "no step": (lambda x, w: T.conv1d(x, w, stride=0), [(2, 8, 21), (5, 8, 3)], "a stride is 1 or more, not 0"),
    "zeros taken off": (lambda x, w: T.conv1d(x, w, padding=-1), [(2, 8, 21), (5, 8, 3)], "a padding is 0 or more, not -1"),
    "rows as images": (T.conv2d, [(2, 8, 21), (5, 8, 3)], r"not f32\[2, 8, 21\] and"),
    "a word for padding": (lambda x, w: T.conv1d(x, w, padding="full"), [(2, 8, 21), (5, 8, 3)], "'same' or 'valid', not 'full'"),
    "steps": (lambda x, w: T.conv1d(x, w, padding="same", stride=2), [(2, 8, 21), (5, 8, 3)], "is for a stride of 1"),
}


def test_no_zeros_lie_around_rows_of_a_table() -> None:
    form = lambda w, table, idx: T.conv1d(table[idx].T, w, padding=1)  # noqa: E731
    with pytest.raises(TileError, match="zeros do not lie around elements at indices that are read"):
        kernel_of(form, [(5, 8, 3), (100, 8), (30,)], ["float16", "float16", "int32"]).kernel  # noqa: B018


@pytest.mark.parametrize("name", MISTAKES)
def test_a_window_that_does_not_fit_is_told(name: str) -> None:
    form, shapes, message = MISTAKES[name]
    with pytest.raises(TileError, match=message):
        kernel_of(form, shapes, "float32").kernel  # noqa: B018


def test_a_bias_has_a_number_for_each_channel() -> None:
    with pytest.raises(TileError, match="a bias has a number for each of 5 channels"):
        kernel_of(T.conv1d, [(2, 8, 21), (5, 8, 3), (1,)], "float32").kernel  # noqa: B018
