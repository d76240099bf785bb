"""Values one behind the other, slices in steps, and what is made of them, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.tensor.test_tensor_meaning import assert_near, drawn, in_numpy, kernel_of, softmax
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Alloc
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.reference import run_kernel

X, Y, Z = (17, 33), (17, 7), (5, 33)
FORMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "columns": (lambda x, y: np.concatenate([x, y], axis=1), [X, Y]),
    "rows": (lambda x, z: np.concatenate([x, z, x]) * 2, [X, Z]),
    "vectors": (lambda x, y: np.concatenate([x, y]), [(33,), (5,)]),
    "softmax along the parts": (lambda x, y: softmax(np.concatenate([x, y], axis=1)), [X, Y]),
    "beside a whole": (lambda x, y, w: np.concatenate([x, y], axis=1) * w, [X, Y, (17, 40)]),
    "two cut elsewhere": (lambda x, y: np.concatenate([x, y], axis=1) + np.concatenate([y, x], axis=1), [X, Y]),
    "as the depth of a product": (lambda x, y, w: np.concatenate([x, y], axis=1) @ w, [X, Y, (40, 9)]),
    "as rows of a product": (lambda x, z, w: np.concatenate([x, z]) @ w, [X, Z, (33, 9)]),
    "as columns of a product": (lambda x, z, w: w @ np.concatenate([x, z]).mT, [X, Z, (9, 33)]),
    "as a batch of products": (lambda x, y, w: np.concatenate([x, y]) @ w, [(3, *X), (2, *X), (5, 33, 8)]),
    "rotated halves": (
        lambda x, c, s: x * c + np.concatenate([-x[:, 32:], x[:, :32]], axis=-1) * s, [(17, 64), (17, 64), (17, 64)],
    ),
    "keys behind a cache": (
        lambda q, k, k2, v, v2: softmax(q @ np.concatenate([k2, k]).mT * 0.25) @ np.concatenate([v2, v]),
        [(17, 16), (33, 16), (5, 16), (33, 24), (5, 24)],
    ),
    "reversed parts": (lambda x, y: np.concatenate([x, y], axis=1)[::-1, ::-3], [X, Y]),
    "one row of the parts": (lambda x, z: np.concatenate([x, z])[18, 2:], [X, Z]),
    "laid in rows": (lambda x, y: np.concatenate([x[:, None], y[:, None]], axis=1).reshape(34, 33), [X, X]),
    "in turns": (lambda x, y: np.concatenate([x[..., None], y[..., None]], axis=-1).reshape(17, 66), [X, X]),
    "a running sum along the parts": (lambda x, y: np.cumsum(np.concatenate([x, y], axis=1), axis=1), [X, Y]),
    "parts of parts": (lambda x, y: np.concatenate([np.concatenate([x, y], axis=1)] * 2, axis=0).mT, [X, Y]),
    "every other column": (lambda x: x[:, ::2] * 2, [X]),
    "every third row, summed": (lambda x: np.sum(x[1::3], axis=0), [X]),
    "turned round": (lambda x: x[::-1] + x[:, ::-1], [X]),
    "turned round behind a reshape": (lambda x: np.reshape(x, (1, 17, 3, 11))[:, ::-1, 1], [X]),
    "turned round where an axis is kept": (lambda x: np.max(x, axis=1, keepdims=True)[::-1] * x, [X]),
    "sums of what is centred along them, twice": (
        lambda x: np.concatenate([np.sum(x - np.mean(x, axis=1, keepdims=True), axis=(0, 2))] * 2), [(5, 17, 7)],
    ),
    "in steps beside each other": (lambda x: x[:, ::2] - x[:, 1::2], [(17, 64)]),
    "windows of rows and columns": (lambda x: np.max(np.reshape(x, (3, 6, 2, 8, 2)), axis=(2, 4)), [(3, 12, 16)]),
    "columns in steps as the depth of a product": (lambda x, w: x[:, ::2] @ w, [(17, 64), (32, 24)]),
    "columns in steps of a product": (lambda x, w: w @ x[:, ::2], [(17, 64), (5, 17)]),
    "rows in steps of a product": (lambda x, w: x[::2] @ w, [(18, 32), (32, 24)]),
    "weights of one place of a convolution": (lambda w, x: w[:, :, 1] @ x, [(9, 17, 3), X]),
    "patches as rows of a product": (
        lambda x, w: np.reshape(np.transpose(np.reshape(x, (3, 4, 4, 4, 4)), (1, 3, 0, 2, 4)), (16, 48)) @ w,
        [(3, 16, 16), (48, 9)],
    ),
    "parts in turns, with more beside them": (
        lambda x, y: np.reshape(np.stack([x, -x], axis=-1), (17, 66)) * y + np.arange(66), [X, (17, 66)],
    ),
    "sums of parts in turns": (lambda x: np.sum(np.reshape(np.stack([x, 2 * x], axis=-1), (17, 66)), axis=1), [X]),
    "one of the parts in turns": (lambda x: np.reshape(np.stack([x, 2 * x], axis=-1), (17, 66))[:, 1::2], [X]),
    "some of the parts in turns": (lambda x: np.reshape(np.stack([x, 2 * x], axis=-1), (17, 66))[:, 3:15] + 1, [X]),
    "parts in turns, transposed": (lambda x: np.reshape(np.stack([x, 2 * x], axis=-1), (17, 66)).mT, [X]),
    "backwards in steps": (lambda x: x[1:-1:3, 30:2:-4], [X]),
}  # fmt: skip
CASES = [pytest.param(*form, id=name) for name, form in FORMS.items()]


@pytest.mark.parametrize("to", [(34 * 8,), (17, 2, 8), (8, 34)])
def test_rows_of_two_parts_do_not_take_turns(to: tuple[int, ...]) -> None:
    with pytest.raises(TileError, match="a reshape goes across the parts of `concatenate`"):
        kernel_of(lambda x, y: np.concatenate([x, y], axis=1).reshape(to), [(17, 8), (17, 8)]).kernel  # noqa: B018


@pytest.mark.few(8)
@pytest.mark.parametrize(("form", "shapes"), CASES)
def test_the_kernel_tree_of_parts_means_what_numpy_computes(form: Callable[..., Any], shapes: list[tuple[int, ...]]) -> None:
    arrays = drawn(shapes, "float32")
    kernel = kernel_of(form, shapes, "float32").kernel
    for size in (16, 64):
        built = kernel.build(dict.fromkeys(kernel.open, size)) if isinstance(kernel, OpenKernel) else kernel
        out = run_kernel(built, {t.name: a for t, a in zip(kernel.tensors, arrays, strict=False)})
        assert_near(out[kernel.tensors[-1].name], in_numpy(form, arrays), 1e-5)


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize(("form", "shapes"), CASES)
def test_the_emitted_kernel_of_parts_computes_what_numpy_does(form: Callable[..., Any], shapes: list[tuple[int, ...]]) -> None:
    arrays = drawn(shapes, "float16")
    assert_near(kernel_of(form, shapes, "float16")(*arrays), in_numpy(form, arrays), 5e-3)


def tiles_of(form: Callable[..., Any], shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shapes of the buffers of a kernel."""
    kernel = kernel_of(form, [shape], "float16").kernel
    built = kernel.build(dict.fromkeys(kernel.open, 16)) if isinstance(kernel, OpenKernel) else kernel
    return [a.shape for a in built.body if isinstance(a, Alloc)]


def test_what_lies_between_the_elements_of_a_slice_is_loaded_once() -> None:
    tiles = tiles_of(lambda x: x[:, :32:2] + x[:, 1:32:2], (64, 48))
    assert tiles.count((16, 32)) == 1


def means_what_numpy_computes(form: Callable[..., Any], shapes: list[tuple[int, ...]]) -> None:
    kernel, arrays = kernel_of(form, shapes, "float16").kernel, drawn(shapes, "float16")
    built = kernel.build(dict.fromkeys(kernel.open, 16)) if isinstance(kernel, OpenKernel) else kernel
    out = run_kernel(built, {t.name: a for t, a in zip(kernel.tensors, arrays, strict=False)})
    assert_near(out[kernel.tensors[-1].name], in_numpy(form, arrays), 5e-3)


def test_rows_in_steps_have_one_column() -> None:
    means_what_numpy_computes(lambda x: x[:, 3::4, 1:9:4].mT + 1, [(2, 35, 13)])


def test_single_elements_of_a_product_lie_far_apart() -> None:
    means_what_numpy_computes(lambda x, y: (x @ y)[3:4, 2::17], [(7, 20), (20, 40)])


def test_the_depth_of_a_product_goes_backwards_in_steps() -> None:
    means_what_numpy_computes(lambda x, y: x[:, 40:8:-2] @ y, [(17, 64), (16, 24)])


def test_parts_in_turns_are_stored_as_one_tile() -> None:
    tiles = tiles_of(lambda x: np.reshape(np.stack([x, -x], axis=-1), (64, 32)), (64, 16))
    assert (32,) in tiles


def test_conditions_take_turns() -> None:
    x = drawn([(6, 20)], "float32")[0]
    kernel = kernel_of(lambda x: np.reshape(np.stack([x > 0, x < 1], axis=-1), (6, 40)), [x.shape], "float32")
    assert (kernel(x) == np.reshape(np.stack([x > 0, x < 1], axis=-1), (6, 40))).all()


A = T.Tensor((8, 16), "float16")


def of_other_rows(x: A) -> Any:
    return np.concatenate([x, x[:4]], axis=1)


def of_numbers(x: A) -> Any:
    return np.concatenate([np.sum(x), np.max(x)])


def in_no_step(x: A) -> Any:
    return x[::0]


def picked_across(x: A, i: T.Tensor((5,), "int32")) -> Any:
    return np.concatenate([x, x])[i]


def too_many(x: A) -> Any:
    return np.concatenate([x[n % 8][None] for n in range(65)])


def of_odd_bytes(x: A) -> Any:
    return np.concatenate([x[:, :3] > 0, x[:, 3:] > 1], axis=1)


MISTAKES = {
    of_odd_bytes: ("two parts of this output share a pair of bytes", "where(c, 1.0, 0.0)"),
    of_other_rows: ("f16[8, 16] and f16[4, 16] do not lie one behind the other along axis 1", "all sizes but that"),
    of_numbers: ("single numbers are not joined", "x[None]"),
    in_no_step: ("the steps of a slice are not 0", ""),
    picked_across: ("indices pick elements across the parts", "of each part"),
    too_many: ("this output has 65 parts", "where(arange(n) < m, x, y)"),
}


@pytest.mark.parametrize("function", MISTAKES, ids=lambda f: f.__name__)
def test_what_cannot_be_joined_is_told_at_its_line(function: Any) -> None:
    message, help = MISTAKES[function]
    with pytest.raises(TileError) as caught:
        tile_eg.jit(function)
    assert message in caught.value.message and help in caught.value.help
    assert caught.value.span is not None and caught.value.span.line == function.__code__.co_firstlineno + 1


@pytest.mark.slow
def test_bytes_beside_others_are_stored_where_pairs_of_them_end() -> None:
    x = np.arange(-12, 12, dtype=np.int8).reshape(4, 6)
    kernel = kernel_of(lambda x: (np.pad(x, ((2, 1), (2, 0)), constant_values=3)), [x.shape], ["int8"])
    assert (kernel(x) == np.pad(x, ((2, 1), (2, 0)), constant_values=3)).all()
    one = kernel_of(lambda x: np.full_like(x, 7), [(1, 3)], ["int8"])
    assert (one(x[:1, :3]) == 7).all()
