"""What a message says to do instead, where another language's habit led to the mistake."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tile_eg.errors import TileError

WAYS = [
    ("T.fill(x, 'a')", "a buffer is filled with a number, not str 'a'", "T.fill(x, 0.0)"),
    ("T.reduce_sum(x, v, axis=1)", "unexpected keyword argument 'axis'", "write dim in place of axis"),
    ("T.reduce_sum(x, v, dim=1, keepdims=True)", "unexpected keyword argument 'keepdims'", "a vector is a column as v[:, None]"),
    ("T.atomic_or(O[c * 16, 0], x)", "T has no word atomic_or", "T.atomic_add, _max, _min are atomic"),
    ("for i, j in T.Parallel(16, 128):\n    x[i, j] = T.if_then_else((x[i, j] > 0) ^ (y[i, j] > 0), 1.0, 0.0)",
     "conditions are joined by and, or, not", "(a and not b) or (b and not a)"),
    ("x[:, :] = exp(x)", "unknown name `exp`", "write T.exp"),
    ("for i in T.serial(4):\n    z = T.alloc_shared((16, 128), 'float32')\nT.copy(z, O[0, 0])",
     "z is bound in a loop or a branch, and ends with it", "bind z before that"),
    ("T.copy(x, y, 16)", "an extent of [16] does not fit y", "[m, n]"),
    ("for i in range(x):\n    T.clear(x)", "the bound of a loop has to be an integer", "x.shape[0]"),
    ("T.copy(A[lambda i: i, 0], x)", "an index is needed here, not a function", ""),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "message", "way"), WAYS)
def test_the_message_says_what_to_write(python_error: Callable[[str], TileError], lines: str, message: str, way: str) -> None:
    error = python_error(lines)
    assert message in error.message
    assert way in error.help
