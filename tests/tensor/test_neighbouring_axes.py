"""Axes that lie side by side wherever they are become one, and tensors are indexed in the shapes that this gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tile_eg.language as T
from tests.tensor.test_random_expressions import by_tree, in_simulator
from tests.tensor.test_tensor_meaning import Array, assert_near, drawn, in_numpy, kernel_of
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.printer import print_kernel
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.seen import indexed
from tile_eg.ops.types import F32

SHAPE = (2, 3, 4, 5)


def normalised(x: Any, axes: tuple[int, ...]) -> Any:
    less = x - np.mean(x, axis=axes, keepdims=True)
    return less / np.sqrt(np.mean(less * less, axis=axes, keepdims=True) + 1e-5)


def positions(x: Any, count: int) -> Any:
    return np.arange(count) if isinstance(x, np.ndarray) else T.arange(count)


def in_groups(x: Any) -> Any:
    n, c, h, w = SHAPE
    return np.reshape(normalised(np.reshape(x, (n, c, 1, h, w)), (2, 3, 4)), SHAPE)


SEEN: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "of each element": (lambda x: x * 2, [(120,), (120,)]),
    "batches": (lambda x: normalised(x, (0, 2, 3)), [(2, 3, 20), (2, 3, 20)]),
    "groups": (in_groups, [(6, 20), (6, 20)]),
    "a channel left out": (lambda x: x[:, 1:] * 2, [(2, 60), (2, 40)]),
    "a batch and a channel left out": (lambda x: x[1:, 1:] * 2, [(2, 60), (40,)]),
    "a row left out": (lambda x: x[:, :, 1:] * 2, [(6, 20), (6, 15)]),
    "a column left out": (lambda x: x[..., 1:] * 2, [(24, 5), (24, 4)]),
    "in another order": (lambda x: np.transpose(x, (2, 3, 0, 1)) * 2, [(6, 20), (20, 6)]),
    "sums of rows": (lambda x: np.sum(x, axis=3), [(24, 5), (24,)]),
    "turned round": (lambda x: x[:, ::-1, ::-1] * 2, [(2, 12, 5), (2, 12, 5)]),
    "turned round beside itself": (
        lambda x: np.sum(x[:, ::-1, ::-1], axis=(1, 2))[:, None] + x[:, 0, 0][:, None], [(2, 12, 5), (2, 1, 5)],
    ),
    "by their columns": (lambda x: x * positions(x, 5), [(24, 5), (24, 5)]),
}


def built(form: Callable[..., Any], size: int = 64) -> tuple[OpenKernel | Kernel, Kernel]:
    kernel = kernel_of(form, [SHAPE], "float32").kernel
    return kernel, kernel.build(dict.fromkeys(kernel.open, size)) if isinstance(kernel, OpenKernel) else kernel


@pytest.mark.parametrize("name", SEEN)
def test_the_shapes_in_which_tensors_are_indexed(name: str) -> None:
    form, want = SEEN[name]
    assert [indexed(t).shape for t in built(form)[0].tensors] == want


@pytest.mark.parametrize("size", [8, 64])
@pytest.mark.parametrize("name", SEEN)
def test_it_means_what_numpy_computes(name: str, size: int) -> None:
    form, _ = SEEN[name]
    (x,) = drawn([SHAPE], "float32")
    assert_near(by_tree(built(form, size)[1], [x]), in_numpy(form, [x]), 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["batches", "groups", "in another order"])
def test_its_text_computes_it(name: str) -> None:
    form, _ = SEEN[name]
    (x,) = drawn([SHAPE], "float32")
    got = in_simulator(built(form)[1], [x])
    assert got.shape == in_numpy(form, [x]).shape
    assert_near(got, in_numpy(form, [x]), 1e-4)


AXES = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(tuple)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("permuted"), st.permutations(range(4))),
        st.tuples(st.just("centred"), AXES),
        st.tuples(st.just("part"), st.integers(0, 3)),
        st.tuples(st.just("by positions"), st.integers(0, 3)),
        st.tuples(st.just("joined and parted"), st.integers(0, 2)),
    ),
    min_size=1,
    max_size=4,
)  # fmt: skip


def stepped(x: Any, steps: list[tuple[str, Any]]) -> Any:
    for step, how in steps:
        match step:
            case "permuted":
                x = np.transpose(x, tuple(how))
            case "centred":
                x = x - np.mean(x, axis=how, keepdims=True)
            case "part":
                x = x[(slice(None),) * how + (slice(x.shape[how] // 2, None),)]
            case "by positions":
                x = x * np.reshape(positions(x, x.shape[how]), (-1,) + (1,) * (3 - how))
            case "joined and parted":
                one = (*x.shape[:how], prod(x.shape[how : how + 2]), *x.shape[how + 2 :])
                x = np.reshape(np.reshape(x, one) * 0.5, x.shape)
    return x


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(STEPS, st.sampled_from([1, 3, 8, 64]))
def test_any_steps_mean_what_numpy_computes(steps: list[tuple[str, Any]], size: int) -> None:
    def form(x: Array) -> Array:
        return stepped(x, steps)  # type: ignore[no-any-return]

    (x,) = drawn([SHAPE], "float32")
    assert_near(by_tree(built(form, size)[1], [x]), in_numpy(form, [x]), 1e-4)


def test_such_a_kernel_prints_and_reads_back_as_itself() -> None:
    kernel = replace(built(SEEN["batches"][0])[1], name="k")
    text = print_kernel(kernel)
    assert "[2, 3, 4, 5] as [2, 3, 20]" in text
    again = load_text(text).instantiate()
    assert (again.tensors, again.grid, again.body) == (kernel.tensors, kernel.grid, kernel.body)


@pytest.mark.parametrize("body", ["B = A + v", "grid t = 4 B[t, 0] = A[t, 0:24] + v"])
def test_a_text_may_say_in_which_shape_it_sees_tensors(body: str) -> None:
    text = "kernel k(A: f32[2, 48] as [4, 24], v: f32[24]) -> B: f32[96] as [4, 24] { %s }"
    kernel = load_text(text % body).instantiate()
    a, v = drawn([(2, 48), (24,)], "float32")
    one = kernel.build(dict.fromkeys(kernel.open, 8)) if isinstance(kernel, OpenKernel) else kernel
    np.testing.assert_array_equal(by_tree(one, [a, v]), (a.reshape(4, 24) + v).reshape(96))


def test_the_shape_that_is_seen_has_the_same_elements() -> None:
    with pytest.raises(TileError, match=r"\[4, 8\] are 32 elements, and \[4, 9\] are 36"):
        load_text("kernel k(A: f32[4, 8] as [4, 9]) -> B: f32[4, 9] { B = A }").instantiate()


@pytest.mark.parametrize("shape, strides, seen, want", [
    ((2, 3, 4), (24, 4, 1), (2, 12), (24, 1)),
    ((2, 3, 4), (12, 4, 1), (24,), (1,)),
    ((6, 4), (8, 2), (2, 3, 4), (24, 8, 2)),
    ((2, 1, 4), (4, 99, 1), (8,), (1,)),
])  # fmt: skip
def test_strides_of_what_is_seen(shape: Any, strides: Any, seen: Any, want: Any) -> None:
    assert indexed(Tensor("x", F32, shape, False, strides=strides, seen=seen)).strides == want


def test_gaps_inside_of_what_is_seen_are_refused() -> None:
    with pytest.raises(TileError, match="does not lie in GM so"):
        indexed(Tensor("x", F32, (2, 3, 4), False, strides=(24, 8, 1), seen=(2, 12)))
