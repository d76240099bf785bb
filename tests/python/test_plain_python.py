"""Plain Python in a kernel: what is done when it is read, and what is refused with something to write in its place."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.python.written import defined
from tile_eg.errors import TileError

TEXT = """
OPTIONS = {{"pad_value": 7.0}}
BIAS = None
@tile_eg.jit(out_idx=[-1], effort="none")
@T.prim_func
def f(X: T.Tensor((30, 32), "float32"), Y: T.Tensor((32, 32), "float32")):
    with T.Kernel(2) as b:
        x = T.alloc_ub((16, 32), "float32")
        y = T.alloc_ub((16, 32), "float32")
        m = T.alloc_ub((16,), "float32")
        T.copy(X[b * 16, 0], x, pad_value=0)
        T.tile.fill(y, 0.0)
        T.tile.fill(m, 0.0)
{}
        T.copy(y, Y[b * 16, 0])
"""
X = np.random.default_rng(0).uniform(-1, 1, (30, 32)).astype(np.float32)
P = np.concatenate([X, np.zeros((2, 32), np.float32)])
FIRST = np.arange(32)[:, None] < 16
DONE = {
    "an import": ("import math\ny[:, :] = x * math.pi", P * np.float32(np.pi)),
    "a name of another module": ("from math import pi as p\ny[:, :] = x * p", P * np.float32(np.pi)),
    "abs": ("y[:, :] = abs(x)", np.abs(P)),
    "round": ("y[:, :] = round(x * 4)", np.rint(P * 4)),
    "pow": ("y[:, :] = pow(x, 2)", P * P),
    "len": ("y[:, :] = x * len(m)", P * 16),
    "an index among others": ("if b in (0, 5):\n    T.copy(x, y)", np.where(FIRST, P, 0)),
    "an index that is none of some": ("if b not in (0, 5):\n    T.copy(x, y)", np.where(FIRST, 0, P)),
    "a buffer that is there": ("if x is not None and BIAS is None:\n    T.copy(x, y)", P),
    "arguments in a dictionary": ("T.copy(X[b * 16, 0], y, **OPTIONS)", np.concatenate([X, np.full((2, 32), 7.0)])),
    "a dictionary in another": ("d = {**OPTIONS, 'k': 2}\ny[:, :] = x * d['pad_value'] * d['k']", P * 14),
    "del of a name and an item": ("k, d = 3.0, [2.0, 5.0]\ndel k, d[0]\nk = d[0]\ny[:, :] = x * k", P * 5),
    "items of lists and dicts": ("d, e = [1, 2], {}\nd[0] = 3\nd[1] += 1\ne[1] = 5\ny[:, :] = x * d[0] * d[1] * e[1]", P * 45),
    "a list that grows in a loop": ("d = [1]\nfor i in range(4):\n    d.append(i)\n    x += len(d)\ny[:, :] = x + d[4]", P + 17),
    "an item that changes in a loop": ("d = [1]\nfor i in T.serial(3):\n    d[0] *= 2\n    x += d[0]\ny[:, :] = x", P + 14),
    "a new axis by NumPy's name": ("import numpy as np\ny[:, :] = x + m[:, np.newaxis]", P),
}
REFUSED = {
    "not of a tile": ("y[:, :] = not x", "x is a tile, not a condition", "T.if_then_else(x > 0, x, y)"),
    "a choice by a tile": ("y[:, :] = 1 if x else 0", "x is a tile, not a condition", "T.if_then_else"),
    "a tile behind and": ("y[:, :] = T.if_then_else((x > 0) and y, x, 0)", "y is a tile", "T.if_then_else"),
    "an element outside": ("y[16, 0] = 1", "this part of `y` lies outside: index 16, dimension 0", "its indices are 0 to 15"),
    "an element from the end": ("y[-1, 0] = 1", "this part of `y` lies outside: index -1", "write 15"),
    "rows that lie outside in one block": ("y[b * 15 : b * 15 + 2, :] = 1", "this part of `y` lies outside", "0 to 15"),
    "a loop that writes outside": ("for i, j in T.Parallel(16, 64):\n    y[i, j] = 1", "j takes the value 63", ": if j < 32"),
    "a loop that writes before": ("for i, j in T.Parallel(16, 32):\n    y[i, j - 1] = 1", "the value -1", ": if j - 1 >= 0"),
    "a loop that reads outside": ("for i, j in T.Parallel(16, 32):\n    y[i, j] = x[i, j + 1]", "the value 32", "min(j + 1, 31)"),
    "a keyword that is none": ("T.copy(x, y, padvalue=0)", "unexpected keyword argument 'padvalue'", "did you mean pad_value?"),
    "a method of arrays": ("m[:] = x.sum(1)", "a buffer has no attribute sum", "T.reduce_sum(x, dim=1)"),
    "try": ("try:\n    T.clear(y)\nfinally:\n    pass", "`try` has no meaning in a kernel", "T.device_assert"),
    "a return": ("return", "`return` stands at the end of a function", "under `if`"),
    "what the author raises": ("raise ValueError('too wide')", "the kernel raises ValueError: too wide", ""),
    "raise in a branch": ("if b > 0:\n    raise ValueError", "nothing is raised while a kernel runs", "device_assert"),
    "a slice with a step": ("y[:, 0:16] = x[:, ::2]", "a slice in a kernel has no step", "y[i, j] = x[i, 2 * j]"),
    "an unknown name": ("y[:, :] = zz", "unknown name `zz`", "above its first use"),
    "a name that was deleted": ("del y\ny[:, :] = 1", "unknown name `y`", "above its first use"),
    "del of a part": ("del y[0]", "y[0] cannot be deleted", "items of lists"),
    "a list that grows in a long loop": ("d = [1]\nfor i in range(300):\n    d.append(2)", "d changes inside", "256 trips"),
    "a list that grows in a branch": ("d = [1]\nif b > 0:\n    d.append(2)", "d changes inside a loop or branch", "a buffer"),
    "a buffer in a list": ("d = [1]\nd[0] = T.alloc_shared((16, 32), 'float32')", "needs a name of its own", "name it first"),
    "a function of tiles": ("y[:, :] = float(x)", "float is not a word", 'T.cast(x, "float32")'),
    "the length of a part": ("y[:, :] = x * len(x[0, 0:3])", "not of `x[0, 0:3]`", "write the number itself"),
    "a list in place of keywords": ("T.copy(x, y, **[1])", "** takes a dictionary", ""),
    "a whole tensor in a value": ("y[:, :] = X + 1", "`y` takes 16 x 32 here", "load the part that is meant first"),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("name", DONE)
@pytest.mark.slow(but=2)
def test_what_is_plain_python_is_done_when_the_kernel_is_read(name: str) -> None:
    line, want = DONE[name]
    np.testing.assert_allclose(kernel(line)(X), want, rtol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_says_what_has_one(name: str) -> None:
    line, message, help = REFUSED[name]
    with pytest.raises(TileError) as caught:
        kernel(line).compile()
    assert message in caught.value.message
    assert help in caught.value.help
    assert caught.value.span is not None


def kernel(line: str):
    text = TEXT.format("\n".join("        " + part for part in line.split("\n")))
    return defined(text)["f"]


NUMBERS = [1, 2]


@pytest.mark.parametrize("rows", [4, 8])
def test_a_list_outside_of_the_kernel_stays_what_it_is(rows: int) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def k(X: T.Tensor((rows, 32), "float32"), Y: T.Tensor((rows, 32), "float32")):
        with T.Kernel(1):
            x = T.alloc_ub((rows, 32), "float32")
            T.copy(X, x)
            NUMBERS.append(5)
            T.copy(x * len(NUMBERS), Y)

    np.testing.assert_allclose(k(X[:rows]), X[:rows] * 3, rtol=1e-6)
    assert NUMBERS == [1, 2]


def test_a_list_outside_of_the_kernel_does_not_grow_in_a_long_loop() -> None:
    with pytest.raises(TileError, match="OPTIONS changes inside a loop"):
        kernel("for i in range(300):\n    OPTIONS.update(a=5)").compile()
