"""Python that is done when a kernel is read: loops that end early, numbers that change, functions, bits of indices."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.python.written import defined

pytestmark = pytest.mark.slow(but=2)

TEXT = """
double = lambda t: t * 2
@T.prim_func
def f(X: T.Tensor((16, 32), "float32"), V: T.Tensor((32,), "float32"), Y: T.Tensor((16, 32), "float32")):
    with T.Kernel(1) as cid:
        x = T.alloc_ub((16, 32), "float32")
        y = T.alloc_ub((16, 32), "float32")
        v = T.alloc_ub((32,), "float32")
        T.copy(X[0, 0], x)
        T.copy(V[0], v)
        T.tile.fill(y, 0.0)
{}
        T.copy(y, Y[0, 0])
"""
X = np.random.default_rng(0).uniform(-1, 1, (16, 32)).astype(np.float32)
V = np.random.default_rng(1).uniform(-1, 1, 32).astype(np.float32)
Z, R, C = np.zeros_like(X), np.arange(16), np.arange(32)
ADD = "T.tile.add(y, y, x)"


def row(values: dict[int, np.ndarray]) -> np.ndarray:
    y = Z.copy()
    for i, value in values.items():
        y[i] = value
    return y


CASES = {
    "while": (f"i = T.alloc_var('int32', init=0)\nwhile i < 3:\n    {ADD}\n    i += 1", 3 * X),
    "break": (f"for i in T.serial(8):\n    if i == 3:\n        break\n    {ADD}", 3 * X),
    "loop_break": (f"for i in T.serial(8):\n    if i == 3:\n        T.loop_break()\n    {ADD}", 3 * X),
    "continue": (f"for i in T.serial(4):\n    if i == 2:\n        continue\n    {ADD}", 3 * X),
    "break of the inner loop": (
        f"for i in range(3):\n    for j in range(9):\n        if j == i:\n            break\n        {ADD}", 3 * X,
    ),
    "a range by the outer loop": (f"for i in range(4):\n    for j in range(i):\n        {ADD}", 6 * X),
    "a variable": ("a = T.alloc_var('int32', init=1)\nfor _ in range(3):\n    a = a * 2\n    T.tile.add(y, y, a)", Z + 14),
    "a variable that picks rows": (
        "a = T.alloc_var('int32', init=0)\nfor i in range(4):\n    y[a, :] = x[a, :]\n    a += 2",
        row({i: X[i] for i in (0, 2, 4, 6)}),
    ),
    "a variable under a condition": (
        "n = T.alloc_var('int32')\nfor i in range(4):\n    if i > 1:\n        n = n + i\nT.tile.fill(y, n)", Z + 5,
    ),
    "a shift by the loop": (
        "for i in range(3):\n    y[1 << i, :] = x[(i << 1) + 1, :]", row({1: X[1], 2: X[3], 4: X[5]}),
    ),
    "xor": ("for i in range(16):\n    y[i, :] = x[i ^ 5, :]", X[R ^ 5]),
    "and": ("for i in range(16):\n    y[i, :] = x[i & 10, :]", X[R & 10]),
    "or": ("for i in range(8):\n    y[i, :] = x[i | 9, :]", row({i: X[i | 9] for i in range(8)})),
    "shifted": ("for i in range(16):\n    y[i, :] = x[i >> 2, :]", X[R >> 2]),
    "bits of columns": ("for i, j in T.Parallel(16, 32):\n    y[i, j] = x[i, j ^ 1]", X[:, C ^ 1]),
    "a lambda": ("sq = lambda t, n=2: t * t * n\ny[:, :] = sq(x)", 2 * X * X),
    "a lambda of the module": ("y[:, :] = double(x)", 2 * X),
    "a function": ("def two(n, *, by=3):\n    return n + 1, n * by\na, b = two(1)\nT.tile.fill(y, a * b)", Z + 6),
    "a macro": ("@T.macro\ndef twice(t):\n    T.tile.add(t, t, t)\ntwice(x)\nT.copy(x, y)", 2 * X),
    "stars": ("idx = (0, 0)\nargs = [y, y, x]\nT.copy(X[(*idx,)], x)\nT.tile.add(*args)", X),
    "the rest": ("a, *rest = [1, 2, 3]\nT.tile.fill(y, rest[1] * a)", Z + 3),
    "buffers in a list": (
        "bufs = [T.alloc_ub((16, 32), 'float32') for _ in range(2)]\nfor n, b in enumerate(bufs):\n    T.tile.fill(b, n + 1)\n"
        "T.tile.add(y, bufs[0], bufs[1])", Z + 3,
    ),
    "a comprehension": ("k = {f'{i}': i * 2 for i in range(4) if i != 1}\nT.tile.fill(y, sum(k.values()))", Z + 10),
    "names in an expression": ("if (n := 3) > 2:\n    T.tile.fill(y, n)", Z + 3),
    "pairs": ("for n, k in zip([1, 2], [3, 4]):\n    T.tile.add(y, y, n * k)", Z + 11),
    "down": ("for i in range(15, -1, -1):\n    y[15 - i, :] = x[i, :]", X[::-1]),
    "from below 0": ("for i in range(-2, 2):\n    T.tile.add(y, y, i)", Z - 2),
    "an index by a condition": ("for i in range(16):\n    y[i, :] = x[T.if_then_else(i < 4, i, 0), :]", X[np.where(R < 4, R, 0)]),
    "a swap": ("a = v[0]\nb = v[1]\nv[0] = b\nv[1] = a\nfor i in range(16):\n    y[i, :] = v", Z + V[[1, 0, *range(2, 32)]]),
    "an element as it was": ("a = v[3]\nT.clear(v)\nT.tile.mul(y, x, a)", X * V[3]),
    "butterflies": (
        "for i in range(16):\n    a = v[i]\n    b = v[i + 16]\n    v[i] = a + b\n    v[i + 16] = a - b\n"
        "for i in range(16):\n    y[i, :] = v", Z + np.concatenate([V[:16] + V[16:], V[:16] - V[16:]]),
    ),
    "an element of a tensor": ("for i in range(4):\n    s = V[i]\n    T.tile.axpy(y, x, s)", X * V[:4].sum()),
}  # fmt: skip


@pytest.mark.few(16)
@pytest.mark.parametrize("name", CASES)
def test_the_lines_mean_what_they_mean_in_python(name: str) -> None:
    lines, wanted = CASES[name]
    text = TEXT.format("".join(f"        {line}\n" for line in lines.split("\n")))
    np.testing.assert_allclose(tile_eg.compile(defined(text)["f"], out_idx=[-1])(X, V), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_a_block_may_end_a_loop() -> None:
    lines = "for i in range(4):\n    if cid + i > 1:\n        break\n    T.tile.add(y, y, x)\n"
    text = TEXT.format("".join(f"        {line}\n" for line in ("T.clear(y)\n" + lines).split("\n")))
    np.testing.assert_array_equal(tile_eg.compile(defined(text)["f"], out_idx=[-1])(X, V), 2 * X)
