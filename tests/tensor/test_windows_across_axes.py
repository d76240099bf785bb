"""Windows of values whose axes a reshape made one, and positions as indices, of whole tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.jit import TileKernel

X = np.arange(70, dtype=np.float32).reshape(7, 10)
AT = np.array([3, 9, 0, 1, 1, 5, 8], np.int32)


def kernel_of(f: Callable[..., Any]) -> TileKernel:
    f.__annotations__ = {"x": T.Tensor((7, 10), "float32"), "at": T.Tensor((7,), "int32")}
    return tile_eg.jit(f)  # type: ignore[no-any-return]



WINDOWS: dict[str, Callable[[Any], Any]] = {
    "columns that are repeated": lambda x: np.repeat(x, 2, axis=1)[:, 1:],
    "rows that are repeated": lambda x: np.repeat(x, 3, axis=0)[4:19],
    "elements in a row": lambda x: x.reshape(70)[3:47],
    "copies side by side": lambda x: np.tile(x, (1, 3))[:, 5:25],
    "sums of such": lambda x: np.sum(np.repeat(x, 2, axis=1)[:, 1:], axis=1),
}


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_across_axes_are_those_of_numpy(name: str) -> None:
    window = WINDOWS[name]
    want = window(X)
    assert np.array_equal(np.asarray(kernel_of(lambda x, at: window(x) + 0 * at[0])(X, AT)).reshape(want.shape), want)


def test_an_operand_of_a_product_takes_none() -> None:
    with pytest.raises(TileError, match="a window goes across axes") as caught:
        kernel_of(lambda x, at: np.repeat(x, 2, axis=1)[:, 1:] @ x.reshape(70)[:57].reshape(19, 3)).kernel  # noqa: B018
    assert caught.value.help == "take the window of the tensor before it is reshaped"


@pytest.mark.slow
def test_positions_that_are_known_are_indices() -> None:
    found = kernel_of(lambda x, at: x[np.arange(7), at])(X, AT)
    assert np.array_equal(found, X[np.arange(7), AT])
