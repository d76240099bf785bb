"""Floats that the scalar unit stores as whole numbers, in a kernel that is done in the order of its statements: rounded by a cast
as everywhere, and refused without one."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

X = np.zeros((16, 64), np.float32)
X[0, :6] = [54.8, -0.5, 2.5, 300, -300, 3.5]


def stored(dtype: str, value):  # noqa: ANN001, ANN201
    @tile_eg.jit(out_idx=[-1])
    def made():  # noqa: ANN202
        @T.prim_func
        def f(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), dtype)):
            with T.Kernel(1):
                x, y = T.alloc_shared((16, 64), "float32"), T.alloc_shared((16, 64), dtype)
                T.copy(X, x)
                T.clear(y)
                if X[0, 0] > 0:
                    for j in range(6):
                        y[0, j] = value(x, j)
                T.copy(y, Y)

        return f

    return made()


@pytest.mark.filterwarnings("ignore")
def test_a_cast_rounds_to_even_and_saturates() -> None:
    y = stored("int8", lambda x, j: T.cast(x[0, j], "int8"))(X)
    np.testing.assert_array_equal(y[0, :6], [55, 0, 2, 127, -128, 4])


@pytest.mark.parametrize(
    ("value", "told"),
    [(lambda x, j: x[0, j] * 2, "`y` holds i8, the value is f32"), (lambda x, j: 2.5, "2.5 is no i8, which holds whole numbers")],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_whole_number_needs_one(value, told: str) -> None:  # noqa: ANN001
    with pytest.raises(TileError) as error:
        stored("int8", value)(X)
    assert told in str(error.value)


@pytest.mark.filterwarnings("ignore")
def test_what_a_cast_gives_is_divided_as_a_whole_number() -> None:
    y = stored("int32", lambda x, j: T.cast(x[0, j], "int32") // 3 + T.cast(x[0, j], "int32") % 7)(X)
    whole = np.rint(X[0, :6]).astype(int)
    np.testing.assert_array_equal(y[0, :6], whole // 3 + whole % 7)
