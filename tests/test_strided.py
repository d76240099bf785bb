"""Inputs that lie in larger arrays: their layouts by strides, and kernels that read them where they are."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.families import EXAMPLES
from tile_eg.errors import TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.ssa.tiles import check_rows
from tile_eg.inputs import draw
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.strided import Layout, dense, laid_out, layout_of, memory_of
from tile_eg.ops.types import F32
from tile_eg.search.compiler import lower

B, H, S, D = 2, 4, 24, 32


def strides(x: np.ndarray) -> tuple[int, ...]:
    return tuple(n // x.itemsize for n in x.strides)


VIEWS = {
    "rows": np.zeros((8, 6))[2:5],
    "columns": np.zeros((8, 6))[:, 1:4],
    "one column": np.zeros((8, 6))[:, :1],
    "every second row": np.zeros((8, 6))[::2],
    "heads of a projection": np.zeros((B, S, 3, H, D))[:, :, 1].transpose(0, 2, 1, 3),
    "one batch of them": np.zeros((1, S, 3, H, D))[:, :, 1].transpose(0, 2, 1, 3),
    "keys as columns": np.zeros((B, S, H, D)).transpose(0, 2, 3, 1),
    "repeated heads": np.broadcast_to(np.zeros((B, 1, S, D)), (B, H, S, D)),
    "a transposed matrix": np.zeros((8, 6)).T,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_layout_gives_the_strides_that_it_was_found_for(view: np.ndarray) -> None:
    found = layout_of(view.shape, strides(view))
    assert found is not None
    ours = found.strides(view.shape)
    assert all(n == 1 or ours[d] == step for d, (n, step) in enumerate(zip(view.shape, strides(view), strict=True)))


def test_a_layout_holds_at_other_sizes() -> None:
    slice_of_columns = layout_of((8, 64), (192, 1))
    assert slice_of_columns is not None and slice_of_columns.strides((50, 64)) == (192, 1)
    heads = layout_of((B, H, S, D), (S * H * D, D, H * D, 1))
    assert heads is not None and heads.strides((3, H, 7, D)) == (7 * H * D, D, H * D, 1)


@pytest.mark.parametrize("shape_and_strides", [((8, 6), (12, 2)), ((8, 6), (-6, 1)), ((8, 6), (4, 1)), ((2, 3, 4), (9, 4, 1))])
def test_what_lies_in_no_larger_array_has_no_layout(shape_and_strides: tuple) -> None:
    assert layout_of(*shape_and_strides) is None


def test_a_row_does_not_lie_in_a_shorter_one() -> None:
    with pytest.raises(TileError, match="100 elements do not lie in an array of 96"):
        Layout(((0, None), (1, 96))).strides((8, 100))


EXCHANGED, TURNED = Layout(((1, None), (0, None), (2, 100))), Layout(((0, None), (2, None), (1, 140)))


@pytest.mark.slow
@pytest.mark.parametrize("layout", [EXCHANGED, TURNED], ids=["exchanged", "transposed"])
def test_operands_are_read_where_they_lie(layout: Layout) -> None:
    kernel = next(e for e in EXAMPLES if e.file == "gemm/batched").template.instantiate({"Z": 2, "M": 130, "N": 90, "K": 70})
    inputs = [t for t in kernel.tensors if not t.output]
    arrays = draw(inputs, "uniform", seed=1)
    made = laid_out(kernel, tuple((t.name, layout) for t in inputs))
    assert all(t.strides and t.strides != dense(t.shape) for t in made.tensors if not t.output)
    run = lower(made, "910B2").run({t.name: memory_of(t, arrays[t.name]) for t in made.tensors if not t.output})
    wanted = arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32)
    assert np.allclose(run["C"], wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("pitch", "step", "told"),
    [(12, 2, "the elements of a row of `X` lie 2 apart"), (4, 1, "rows of `X` begin 4 elements apart, and are 6 long")],
)
def test_rows_that_do_not_lie_side_by_side_are_told_for_what_they_are(pitch: int, step: int, told: str) -> None:
    with pytest.raises(TileError, match=told):
        check_rows(Tensor("X", F32, (8, 6), False), 6, pitch, (6, step), None)


def test_a_vector_whose_elements_lie_apart_is_refused() -> None:
    example = next(e for e in EXAMPLES if e.file == "attention/combine")
    kernel = laid_out(example.template.instantiate(example.tried[0]), (("L", Layout(((0, None), (2, None), (1, None)))),))
    with pytest.raises(TileError, match="the elements of a vector of `L` lie apart, with others"):
        to_values(kernel)
