"""Loops over rows and elements whose iterations use what others wrote: the same lines run on NumPy arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tile_eg
import tile_eg.language as T
from tests.python.written import defined, prim_func
from tile_eg.errors import TileError

ROWS, COLS = 6, 16
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (ROWS, COLS)).astype(np.float32)
V = RNG.uniform(-1, 1, (COLS,)).astype(np.float32)
KERNEL = """
@T.prim_func
def f(X: T.Tensor(({rows}, {cols}), "float32"), V: T.Tensor(({cols},), "float32"),
      Y: T.Tensor(({rows}, {cols}), "float32"), W: T.Tensor(({cols},), "float32")):
    with T.Kernel(1) as _:
        x = T.alloc_shared(({rows}, {cols}), "float32")
        y = T.alloc_shared(({rows}, {cols}), "float32")
        v = T.alloc_shared(({cols},), "float32")
        w = T.alloc_shared(({cols},), "float32")
        T.copy(X[0, 0], x)
        T.copy(V[0], v)
        T.clear(y)
        T.clear(w)
{lines}
        T.copy(y, Y[0, 0])
        T.copy(w, W[0])
"""


def check(text: str) -> None:
    """The lines mean in a kernel what they mean on arrays; y and w begin with zeros."""
    lines = "".join(f"        {line}\n" for line in text.strip("\n").split("\n"))
    kernel = tile_eg.compile(defined(KERNEL.format(rows=ROWS, cols=COLS, lines=lines))["f"], out_idx=[-2, -1])
    names = {"x": X, "v": V, "y": np.zeros_like(X), "w": np.zeros_like(V), "max": np.maximum}
    exec(text, names)
    for found, name in zip(kernel(X, V), "yw", strict=True):
        np.testing.assert_allclose(found, names[name], rtol=1e-5, atol=1e-5)


FORMS = {
    "a running sum": "for i in range(16):\n    if i > 0:\n        w[i] = w[i - 1]\n    w[i] = w[i] + v[i]",
    "a row after another": "y[0, :] = x[0, :]\nfor i in range(1, 6):\n    y[i, :] = y[i - 1, :] * 0.5 + x[i, :]",
    "elements of rows": "for i in range(6):\n    for j in range(16):\n        if i > 0:\n            y[i, j] = y[i - 1, j]\n"
    "        y[i, j] = y[i, j] + x[i, j]",
    "along a row": "for i in range(6):\n    for j in range(1, 16):\n        y[i, j] = y[i, j - 1] + x[i, j]",
    "a sum in one element": "for i in range(16):\n    w[3] = w[3] + v[i]",
    "backwards": "for i in range(15):\n    w[14 - i] = w[15 - i] + v[14 - i]",
    "columns": "for j in range(1, 16):\n    y[:, j] = y[:, j - 1] + x[:, j]",
    "a part of the rows": "for i in range(2, 5):\n    y[i, :] = x[i, :] * 2.0",
    "other cases": "for i in range(16):\n    if i < 3:\n        w[i] = v[i]\n    else:\n        w[i] = v[i] * 2.0",
    "every other": "for i in range(16):\n    if i % 3 == 1:\n        w[i] = v[i]",
    "two steps back": "w[0] = v[0]\nw[1] = v[1]\nfor i in range(2, 16):\n    w[i] = w[i - 1] - w[i - 2] * 0.5",
    "a row in all": "for i in range(6):\n    y[i, :] = x[0, :] + y[0, :]",
    "a part of a row by a row": "for i in range(1, 6):\n    y[i, 0] = y[i - 1, 0] + x[i, 3]",
    "trips of which some differ": "for k in range(5):\n    if k % 2 == 0:\n        y[:, :] = y * 0.5 + x\n"
    "    else:\n        y[:, :] = y - x",
    "a trip in the middle": "for k in range(5):\n    if k == 2:\n        y[:, :] = x\n    y[:, :] = y + x",
    "swaps of what was written": "for i in range(8):\n    w[2 * i] = v[2 * i + 1]\n    w[2 * i + 1] = w[2 * i] + v[2 * i]",
}  # fmt: skip


@pytest.mark.few(8)
@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_the_lines_mean_what_they_mean_on_arrays(name: str) -> None:
    check(FORMS[name])


@st.composite
def loops(draw: st.DrawFn) -> str:
    """A loop over rows, elements or columns whose statements use places near the one they write."""
    name, other, size, at = draw(st.sampled_from([("w", "v", COLS, "{}"), ("y", "x", ROWS, "{}, :"), ("y", "x", COLS, ":, {}")]))
    first = draw(st.integers(2, 3))
    last = draw(st.integers(first + 1, size - 2))
    near = lambda: at.format(draw(st.sampled_from(["i", "i", "i - 1", "i - 2", "i + 1", "2"])))  # noqa: E731
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        op = draw(st.sampled_from("+-*"))
        line = f"{name}[{near()}] = {draw(st.sampled_from([name, other]))}[{near()}] {op} {other}[{near()}]"
        if draw(st.booleans()):
            test = draw(st.sampled_from(["i > 3", "i == 2", "i % 2 == 0", "i < 4"]))
            line = f"if {test}:\n        {line}"
        lines.append(f"    {line}")
    return "\n".join([f"for i in range({first}, {last}):", *lines])


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(loops())
def test_any_such_loop_does(text: str) -> None:
    check(text)


@pytest.mark.parametrize("line", ["w[i] = w2[15 - i]", "w[i] = w[i - 1] + w2[i + 1]"])
def test_what_nothing_was_written_to_is_not_read(line: str) -> None:
    text = KERNEL.replace("        T.clear(w)\n", "        T.clear(w)\n        w2 = T.alloc_shared(({cols},), 'float32')\n")
    lines = f"        for i in range(1, 15):\n            w2[i] = v[i]\n            {line}"
    with pytest.raises(TileError, match="this part of `w2` is read before anything is written to it"):
        tile_eg.compile(defined(text.format(rows=ROWS, cols=COLS, lines=lines))["f"], out_idx=[-2, -1]).compile()


@T.prim_func
def butterflies(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
    with T.Kernel(1) as _:
        x = T.alloc_ub((16,), "float32")
        T.copy(A, x)
        for stage in T.serial(2):
            for chunk in T.serial(8 >> stage):
                for k in T.serial(1 << stage):
                    at = chunk * (2 << stage) + k
                    a, b = x[at], x[at + (1 << stage)]
                    x[at] = a + b
                    x[at + (1 << stage)] = a - b
        T.copy(x, B)


def test_whether_parts_were_written_is_looked_at_once(monkeypatch) -> None:
    """However many loops are done trip by trip: the kernel is the same for all of them."""
    from tile_eg.frontend.python import kernel_of
    from tile_eg.frontend.ssa import converter, to_values

    looked: list[object] = []
    kernel = kernel_of(butterflies, {})
    monkeypatch.setattr(converter, "check_parts", looked.append)
    to_values(kernel)
    assert len(looked) == 1


@pytest.mark.slow
def test_a_running_sum_of_whole_numbers_begins_with_an_element() -> None:
    kernel = prim_func("""@T.prim_func
def f(V: T.Tensor((16,), "int32"), O: T.Tensor((16,), "int32")):
    with T.Kernel(1) as b:
        v, s = T.alloc_shared((16,), "int32"), T.alloc_shared((16,), "int32")
        T.copy(V, v)
        s[0] = v[0]
        for i in T.serial(1, 16):
            s[i] = s[i - 1] + v[i]
        T.copy(s, O)
""")
    v = np.arange(16, dtype=np.int32)
    np.testing.assert_array_equal(tile_eg.jit(out_idx=[-1], effort="none")(kernel)(v), np.cumsum(v))
