"""What docs/language.md says is so: its kernel runs, its functions are those that there are."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.tensor.functions import FUNCTIONS
from tile_eg.frontend.text import load_text
from tile_eg.jit import TileKernel
from tile_eg.ops.elementwise import UNARY
from tile_eg.search.compiler import check_kernel

PAGE = (Path(__file__).parent.parent / "docs" / "language.md").read_text(encoding="utf-8")
OPERATORS = {"matmul", "pow"}  # in `.tile`
KERNEL = PAGE.split("```tile\n")[1].split("```")[0]


def test_the_functions_are_those_of_the_language() -> None:
    listed = {word for line in _block().splitlines() for word in line.split("#")[0].split()}
    with pytest.raises(TileError) as caught:
        load_text("kernel k() -> C: f32[8] { grid b = 1 shared x: f32[8] x = zzzz(x) C[0] = x }").instantiate()
    assert listed == set(caught.value.help.removeprefix("known here: ").split(", "))


def _block() -> str:
    return PAGE.split("<!-- functions -->\n```text\n")[1].split("```")[0]


def test_every_other_word_of_the_language_is_on_the_page() -> None:
    words = "kernel grid shared fragment let for in serial pipelined stages parallel if"
    assert not [word for word in words.split() if not re.search(rf"`[^`]*\b{word}\b[^`]*`", PAGE)]


@pytest.mark.slow
def test_the_kernel_of_the_page_computes_what_it_says() -> None:
    template = load_text(KERNEL)
    check_kernel(template.instantiate())
    rng = np.random.default_rng(0)
    a, w = rng.standard_normal((100, 200)).astype(np.float16), rng.standard_normal((96, 200)).astype(np.float16)
    bias = rng.standard_normal(96, np.float32)
    c = a.astype(np.float32) @ w.astype(np.float32).T + bias
    want = (c - c.mean(1, keepdims=True)) / np.sqrt(c.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(TileKernel(template)(a, w, bias), want, atol=4e-3)


@pytest.mark.slow
def test_the_kernel_of_whole_tensors_computes_what_it_says() -> None:
    kernel = TileKernel(load_text(PAGE.split("```tile\n")[2].split("```")[0]))
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 80, 32)).astype(np.float16) for _ in range(3))
    s = np.where(np.tri(80, dtype=bool), q.astype(np.float32) @ k.astype(np.float32).swapaxes(1, 2) / np.sqrt(32), -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    np.testing.assert_allclose(kernel(q, k, v), e / e.sum(-1, keepdims=True) @ v, atol=4e-3)


def test_the_functions_of_whole_tensors_are_on_the_page() -> None:
    about = PAGE.split("## Whole tensors")[1]
    others = {w for op in UNARY.values() for w in op.python}
    own = [w for w in (*FUNCTIONS, "arange") if w not in _block().split() and w not in OPERATORS | others]
    assert [w for w in own if not re.search(rf"\b{w}\b", about)] == []
