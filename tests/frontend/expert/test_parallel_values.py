"""Any expression in an element loop of a kept kernel has the value that NumPy gives it."""

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

R, C = 24, 40
RNG = np.random.default_rng(1)
X, Y = (RNG.uniform(-2, 2, (R, C)).astype(np.float32) for _ in range(2))
H = RNG.uniform(-2, 2, (R, C)).astype(np.float16)
V, W = RNG.uniform(-2, 2, C).astype(np.float32), RNG.uniform(-2, 2, R).astype(np.float32)
I, J = np.arange(R)[:, None] + np.zeros((1, C), int), np.arange(C)[None, :] + np.zeros((R, 1), int)  # noqa: E741
MEANT = {
    "x[i, j]": X, "y[i, j]": Y, "(h[i, j] + w[i] * 0.0)": H, "v[j]": V[None, :], "w[i]": W[:, None], "v[3]": V[3],
    "x[j % 5, j]": X[J[0] % 5, J[0]], "x[i, 7]": X[:, 7:8], "y[R - 1 - i, j]": Y[::-1], "y[i, C - 1 - j]": Y[:, ::-1],
    "v[i + 8]": V[8 : 8 + R, None], "1.5": 1.5, "x[2, j]": X[2],
    "((2 * i - j) + v[j] * 0.0)": 2 * I - J,
}  # fmt: skip
SHAPES = {"v": "(C,)", "w": "(R,)"}
Pair = tuple[str, Any]


def f32(x: Any) -> Any:
    return np.asarray(x, np.float32)


SIGNS = {"+": np.add, "-": np.subtract, "*": np.multiply}
CALLS = {"T.abs": np.abs, "T.tanh": np.tanh, "-": np.negative, "T.floor": np.floor, "T.sigmoid": lambda x: 1 / (1 + np.exp(-x))}
PLACES = {
    "i < j": I < J, "j + 1 < 2 * i": J + 1 < 2 * I, "j < 33": J < 33, "i % 3 == 1": I % 3 == 1,
    "i >= 4 and j != 6": (I >= 4) & (J != 6),
}  # fmt: skip


def expression(rng: random.Random, depth: int) -> Pair:
    """A tree of operations: its text, and its value in f32."""
    if depth == 0 or rng.random() < 0.2:
        text = rng.choice(sorted(MEANT))
        return text, f32(MEANT[text])
    (a, x), (b, y) = (expression(rng, depth - 1) for _ in range(2))
    kind = rng.choice(("sign", "call", "max", "div", "place", "choice"))
    if kind == "sign":
        sign = rng.choice(sorted(SIGNS))
        return f"({a} {sign} {b})", SIGNS[sign](x, y)
    if kind == "call":
        name = rng.choice(sorted(CALLS))
        return f"{name}(x[i, j] * 0.0 + {a})", CALLS[name](x)
    if kind == "max":
        return f"T.max({a}, {b} + v[j] * 0.0)", np.maximum(x, y)
    if kind == "div":
        return f"({a} / (1.0 + T.abs({b} + w[i] * 0.0)))", x / (1 + abs(y))
    if kind == "place":
        place = rng.choice(sorted(PLACES))
        return f"T.if_then_else({place}, {a}, {b})", np.where(PLACES[place], x, y)
    return f"T.if_then_else(x[i, j] > 0.25, {a}, {b})", np.where(X > 0.25, x, y)


def loop(text: str) -> Any:
    """Z[i, j] = the expression, computed in UB."""
    lines = [
        "def kernel(X: T.Tensor((R, C), 'float'), Y: T.Tensor((R, C), 'float'), H: T.Tensor((R, C), 'float16'),",
        "           V: T.Tensor((C,), 'float'), W: T.Tensor((R,), 'float'), Z: T.Tensor((R, C), 'float')):",
        "    with T.Kernel(1, is_npu=True) as _:",
        *(f"        {n} = T.alloc_ub({SHAPES.get(n, '(R, C)')}, '{'float16' if n == 'h' else 'float'}')" for n in "xyhvwz"),
        *(f"        T.copy({n.upper()}, {n})" for n in "xyhvw"),
        "        T.barrier_all()",
        "        for i, j in T.Parallel(R, C):",
        f"            z[i, j] = {text}",
        "        T.barrier_all()",
        "        T.copy(z, Z)",
    ]  # fmt: skip
    file = f"<element loop {text}>"
    linecache.cache[file] = (0, None, [f"{line}\n" for line in lines], file)
    names: dict[str, Any] = {"T": T, "R": R, "C": C, "__name__": "loop", "__file__": file}
    exec(compile("\n".join(lines), file, "exec"), names)
    return tile_eg.jit(out_idx=[-1])(lambda: T.prim_func(names["kernel"]))()


def check(seed: int, depth: int) -> None:
    text, meant = expression(random.Random(seed), depth)
    found = loop(text)(X, Y, H, V, W)
    np.testing.assert_allclose(found, meant + np.zeros((R, C), np.float32), rtol=2e-5, atol=2e-5, err_msg=text)


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_an_expression_has_its_value(seed: int) -> None:
    check(seed, 3)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 300))
def test_expressions_have_their_values(seed: int) -> None:
    check(seed, 4)
