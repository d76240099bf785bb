"""The examples, all the way: the Ascend C that each becomes computes what NumPy computes, at any size.

Two yardsticks: the kernel's own sequential meaning with its roundings, and plain NumPy in double precision, which knows nothing
of tiles. Sizes are multiples of the tiles, and not; smaller than a tile; one row, one column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.inputs import USUAL, drawn_sets
from tile_eg.report.compare import absolute_error, compare
from tile_eg.search.compiler import lower

EXAMPLES = Path(__file__).parent.parent / "examples"
Arrays = Mapping[str, np.ndarray]


def attention(x: Arrays) -> np.ndarray:
    s = x["Q"] @ x["K"].swapaxes(-1, -2) / np.sqrt(x["Q"].shape[-1])
    return softmax(s) @ x["V"]


def causal(x: Arrays) -> np.ndarray:
    s = x["Q"] @ x["K"].swapaxes(-1, -2) / np.sqrt(x["Q"].shape[-1])
    return softmax(np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)) @ x["V"]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms_norm(x: Arrays) -> np.ndarray:
    return x["X"] / np.sqrt((x["X"] ** 2).mean(-1, keepdims=True) + 1e-5) * x["W"]


def layer_norm(x: Arrays) -> np.ndarray:
    f = x["X"] - x["X"].mean(-1, keepdims=True)
    return f / np.sqrt((f**2).mean(-1, keepdims=True) + 1e-5) * x["W"] + x["B"]


def gelu_mul(x: Arrays) -> np.ndarray:
    a, b = x["A"][:, 0], x["A"][:, 1]
    return a / (1 + np.exp(-1.5957691 * (a + 0.044715 * a**3))) * b


NUMPY: dict[str, Callable[[Arrays], Arrays]] = {
    "vector_add": lambda x: {"C": x["A"] + x["B"]},
    "gemm": lambda x: {"C": x["A"] @ x["B"]},
    "gemm_transposed": lambda x: {"C": x["A"].T @ x["B"].T},
    "gemm_int8": lambda x: {"C": x["A"] @ x["W"].T * 2.0**-16},
    "gemm_exp": lambda x: {"C": x["A"] @ x["B"], "D": np.exp(x["A"] @ x["B"])},
    "matmul_add": lambda x: {"E": x["A"] @ x["B"] + x["D"]},
    "softmax": lambda x: {"Y": softmax(x["X"])},
    "online_softmax": lambda x: {"Y": softmax(x["X"])},
    "rms_norm": lambda x: {"Y": rms_norm(x)},
    "layer_norm": lambda x: {"Y": layer_norm(x)},
    "gelu_mul": lambda x: {"Y": gelu_mul(x)},
    "flash_attention": lambda x: {"O": attention(x)},
    "flash_attention_causal": lambda x: {"O": causal(x)},
    "flash_attention_rows": lambda x: {"O": attention(x)},
}
GEMM = [(256, 512, 256), (128, 256, 64), (300, 500, 200), (17, 33, 70), (16, 16, 16), (1, 40, 64), (64, 1, 32)]
ATTENTION = [(1, 2, 128, 64), (1, 1, 256, 64), (1, 1, 200, 80), (2, 1, 64, 128), (1, 1, 37, 16)]
SHAPES: dict[str, tuple[tuple[str, ...], list[tuple[int, ...]]]] = {
    "vector_add": (("M", "N"), [(128, 256), (100, 300), (1, 1), (65, 129), (7, 512)]),
    "gemm": (("M", "N", "K"), GEMM),
    "gemm_transposed": (("M", "N", "K"), GEMM),
    "gemm_int8": (("M", "N", "K"), GEMM),
    "gemm_exp": (("M", "N", "K"), [(128, 256, 128), (100, 200, 72), (3, 5, 16)]),
    "matmul_add": (("M", "N", "K"), [(256, 256, 128), (150, 260, 100), (20, 24, 48)]),
    "softmax": (("M", "N"), [(64, 512), (40, 500), (33, 17), (1, 128), (5, 1)]),
    "online_softmax": (("M", "N"), [(64, 512), (33, 700)]),
    "rms_norm": (("M", "N"), [(32, 512), (21, 300)]),
    "layer_norm": (("M", "N"), [(32, 512), (21, 300)]),
    "gelu_mul": (("M", "N"), [(128, 128), (70, 100)]),
    "flash_attention": (("B", "H", "S", "D"), ATTENTION),
    "flash_attention_causal": (("B", "H", "S", "D"), [*ATTENTION[2:], (1, 1, 257, 64)]),
    "flash_attention_rows": (("B", "H", "S", "D"), ATTENTION[:3]),
}
ROUNDED_TWICE = 1e-7
"""The formulas above take constants as they are written; a kernel has them in f32."""
OFTEN = 3
"""Shapes of each example that every run tries; `make long` tries the others."""
CASES = [
    pytest.param(
        name, dict(zip(names, sizes, strict=True)), id=f"{name}-{'x'.join(map(str, sizes))}",
        marks=[pytest.mark.long] if n >= OFTEN else [],
    )  # fmt: skip
    for name, (names, shapes) in SHAPES.items()
    for n, sizes in enumerate(shapes)
]


def test_every_example_has_its_shapes_and_its_numpy_meaning() -> None:
    assert {e.stem for e in EXAMPLES.glob("*.tile")} == set(SHAPES) == set(NUMPY)


@pytest.mark.few(11)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_the_emitted_kernel_computes_what_was_meant(name: str, sizes: dict[str, int]) -> None:
    kernel = load_text((EXAMPLES / f"{name}.tile").read_text(), f"{name}.tile").instantiate(sizes)
    sets = drawn_sets(kernel, USUAL, seed=1)
    compiled = lower(kernel)
    outputs = [compiled.run(drawn.arrays).outputs for drawn in sets]
    for drawn, got in zip(sets, outputs, strict=True):
        assert [(drawn.name, c) for c in compare(got, drawn.meant or {}) if not c.good] == []
    exact = NUMPY[name]({n: a.astype(np.float64) for n, a in sets[0].arrays.items()})
    for output, want in (sets[0].meant or {}).items():
        far = absolute_error(outputs[0][output].astype(np.float64), exact[output])
        assert (far <= 2 * want.allowed + ROUNDED_TWICE).all()
