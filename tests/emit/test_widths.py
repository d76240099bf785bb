"""No text computes an offset in a type that cannot hold it, at sizes where tensors have more than 2^31 elements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.emit.widths import narrowed, overflows
from tile_eg.chips import load_chip
from tile_eg.emit.ascend_c.kernel import kernel_text
from tile_eg.emit.host import launch_blocks
from tile_eg.emit.packed_operand import copy_in_strips
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Tensor
from tile_eg.ops.types import F16
from tile_eg.search import search_options
from tile_eg.search.compiler import lower
from tile_eg.transforms.packed_operand import Matrices

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SQUARE = {"M": 65536, "N": 65536}
ATTENTION = {"B": 10240, "H": 64, "S": 64}
SIZES: dict[str, Mapping[str, int]] = {
    "gemm": SQUARE, "vector_add": {"M": 65536, "N": 49152}, "softmax": {"M": 5242880}, "gemm_transposed": SQUARE,
    "gemm_int8": SQUARE, "gemm_exp": SQUARE, "matmul_add": SQUARE, "online_softmax": {"M": 1310720}, "rms_norm": {"M": 2621440},
    "layer_norm": {"M": 2621440}, "gelu_mul": {"M": 2621440}, "flash_attention": ATTENTION, "flash_attention_rows": ATTENTION,
    "flash_attention_causal": ATTENTION,
}  # fmt: skip
QUICK = ("gemm", "vector_add", "softmax", "flash_attention")
KERNEL = """extern "C" __global__ __aicore__ void k(GM_ADDR A, GM_ADDR workspace)
{{
    const int32_t block = static_cast<int32_t>(AscendC::GetBlockIdx());
    for (int32_t i = 0; i < 16; ++i) {{
        {}
    }}
}}
"""


def test_every_example_has_its_sizes() -> None:
    assert set(SIZES) == {file.stem for file in EXAMPLES.glob("*.tile")}


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in SIZES])
def test_no_offset_of_an_example_overflows(name: str) -> None:
    """And in 32 bits some would: the sizes are large enough to tell."""
    kernel = load_text((EXAMPLES / f"{name}.tile").read_text(), name).instantiate(SIZES[name])
    made = lower(kernel, search=search_options(effort="quick"))
    blocks = launch_blocks(made.program)
    assert overflows(made.source, blocks) == []
    assert overflows(narrowed(made.source), blocks)


def test_no_offset_into_the_workspace_overflows() -> None:
    """A copy of a matrix in strips of 32 bytes lies there, and has more than 2^31 elements."""
    source, strips = Tensor("B", F16, (40960, 65536), False), Tensor("B_strips", F16, (4096, 655360), False)
    text = kernel_text(copy_in_strips(source, strips, Matrices(1, 40960, 65536), 24, load_chip()))
    assert "B_strips_gm[static_cast<int64_t>" in text
    assert overflows(text, 24) == [] and overflows(narrowed(text), 24)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("x[block * 65536];", False),
        ("x[block * 65536 * i];", True),
        ("x[static_cast<int64_t>(block) * 65536 * i];", False),
        ("x[block * 131072 + i];", True),
        ("x[i * 4294967296];", False),
        ("x[block % 7 * 65536];", False),
        ("f(x[i], Params(block * 100000, 3));", True),
        ("const int32_t y = static_cast<int64_t>(block) * 100000;", True),
        ("const int64_t y = static_cast<int64_t>(block) * 100000;", False),
        ("x[block < 1 ? 0 : block * 100000];", True),
    ],
)
def test_the_reader_of_texts_finds_what_overflows(line: str, wrong: bool) -> None:
    assert bool(overflows(KERNEL.format(line), 32768)) is wrong
