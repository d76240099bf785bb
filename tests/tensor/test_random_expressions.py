"""Expressions at random: the kernel tree means what NumPy computes, at random sizes of tiles, or says that it cannot be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.tensor.test_tensor_meaning import Array, assert_near, drawn, in_numpy, kernel_of, softmax
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.reference import run_kernel
from tile_eg.jit import CompiledKernel

SHAPES = [(20, 24), (24, 20), (24, 24), (24,), (20, 1), (2, 20, 24), (2, 24, 20)]
REFUSED = (
    "tiles of three dimensions", "transpose a tile", "tears its rows", "a window goes across", "do not lie side by side",
)  # fmt: skip
UNARY = {
    "tanh": np.tanh, "abs": np.abs, "double": lambda x: x * 2 + 1, "turned": lambda x: x.mT if x.ndim > 1 else x,
    "softmax": softmax, "row sums": lambda x: np.sum(x, axis=-1, keepdims=True) / 8, "greatest": lambda x: np.max(x, axis=-1),
    "column means": lambda x: np.mean(x, axis=-2, keepdims=True) if x.ndim > 1 else x,
    "part": lambda x: x[..., : (x.shape[-1] + 1) // 2],
    "centred": lambda x: x - np.mean(x, axis=-1, keepdims=True), "flat": lambda x: np.reshape(x, (-1, x.shape[-1])),
}  # fmt: skip
BINARY = {
    "sum": lambda x, y: x + y, "product": lambda x, y: x * y, "larger": np.maximum, "matmul": lambda x, y: x @ y * 0.1,
    "chosen": lambda x, y: np.where(x > y, x, y * 0.5), "by its transpose": lambda x, y: x @ x.mT * 0.1 + 0 * np.mean(y),
}  # fmt: skip

Tree = Any
LEAVES = st.integers(0, len(SHAPES) - 1)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(UNARY)), inner), st.tuples(st.sampled_from(sorted(BINARY)), inner, inner)
    ),
    max_leaves=4,
)


def computed(tree: Tree, leaves: Sequence[Array]) -> Array:
    if isinstance(tree, int):
        return leaves[tree]
    name, *operands = tree
    return (UNARY | BINARY)[name](*(computed(t, leaves) for t in operands))


def used(tree: Tree) -> set[int]:
    return {tree} if isinstance(tree, int) else set[int]().union(*map(used, tree[1:]))


SIZES = st.lists(st.sampled_from([1, 3, 8, 16, 64]), min_size=6, max_size=6)
PARTS, EACH = 20, 100
Run = Callable[[Kernel, list[Array]], Array]


def by_tree(kernel: Kernel, arrays: list[Array]) -> Array:
    out = run_kernel(kernel, {t.name: a for t, a in zip(kernel.tensors, arrays, strict=False)})
    return out[kernel.tensors[-1].name]


def in_simulator(kernel: Kernel, arrays: list[Array]) -> Array:
    return CompiledKernel(kernel, [-1], search={"effort": "none"})(*arrays)


def check(tree: Tree, sizes: list[int], run: Run) -> None:
    """The kernel of an expression, at these sizes of tiles, gives what NumPy computes, or is refused with a reason."""
    names = sorted(used(tree))
    shapes = [SHAPES[n] for n in names]

    def form(*arrays: Array) -> Array:
        return computed(tree, dict(zip(names, arrays, strict=True)))  # type: ignore[arg-type]

    arrays = drawn(shapes, "float32")
    try:
        want = in_numpy(form, arrays)
    except (ValueError, IndexError):
        want = None
    try:
        kernel = kernel_of(form, shapes, "float32").kernel
        built = kernel.build(dict(zip(kernel.open, sizes, strict=False))) if isinstance(kernel, OpenKernel) else kernel
    except TileError as error:
        assert want is None or any(text in error.message for text in REFUSED), error
        return
    assert want is not None
    try:
        got = run(built, arrays)
    except TileError as error:
        assert any(text in error.message for text in REFUSED), error
        return
    assert_near(got, want, 1e-4)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(TREES, SIZES)
def test_an_expression_means_what_numpy_computes_or_is_refused(tree: Tree, sizes: list[int]) -> None:
    check(tree, sizes, by_tree)


@pytest.mark.slow
def test_a_sum_of_what_is_spread_over_rows_and_columns_has_their_shape() -> None:
    """The mean of an outer product in tiles whose last one is cut off, beside one number."""
    check(("by its transpose", ("flat", 3), ("by its transpose", 4, 2)), [16, 16, 64, 16, 64, 64], in_simulator)


@pytest.mark.parametrize("size", [8, 16])
def test_a_row_that_is_summed_for_each_of_its_own_tiles_is_made_anew(size: int) -> None:
    """Rows of a product less their means, where sums over all of it leave no axis to the grid."""
    check(("centred", ("by its transpose", 0, 0)), [size] * 6, by_tree)


@pytest.mark.slow
def test_the_text_of_an_expression_gives_what_numpy_computes() -> None:
    every(12, 1)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_the_texts_of_many_expressions_give_what_numpy_computes(part: int) -> None:
    every(EACH, 1000 + part)


def every(count: int, first: int) -> None:
    """Checks so many expressions in the simulator; which ones follows from `first` alone."""

    @seed(first)
    @settings(max_examples=count, derandomize=False, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(TREES, SIZES)
    def each(tree: Tree, sizes: list[int]) -> None:
        check(tree, sizes, in_simulator)

    each()
