"""Candidates of the search compute what their kernel means, are planned again as they were, and read back from their text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extract.kernels import kernel
from tests.extract.test_rows_that_stay import ROWS, SHORT
from tests.fuzz.candidates import faults
from tests.search.test_epilogue_panels import GELU
from tests.search.test_packed_operand import ADDED
from tests.search.test_prefetch import NORM, RMS, TAKEN
from tests.search.test_rest import FLOATS, ODD, TWO_SUMS
from tests.search.test_rest import SHORT as SHORT_FLOATS
from tests.search.test_split_k import TWO
from tests.transforms.test_packed_operand import BOTH_DOWN, BYTES, GEMM, TRANSPOSED

EXAMPLES = Path(__file__).parents[2] / "examples"
CHIPS = ("910B2", "950")


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.tile").read_text("utf-8")


PRODUCTS = {
    "two sums of short tiles": (TWO_SUMS, {}), "tails": (GEMM, ODD), "transposed": (TRANSPOSED, {"M": 460, "N": 390, "K": 384}),
    "both operands": (BOTH_DOWN, ODD), "f32": (FLOATS, ODD), "bf16": (SHORT_FLOATS, ODD), "vector work": (ADDED, {"M": 900}),
    "bytes": (BYTES, {"M": 460, "N": 390, "K": 640}), "parts of sums": (TWO, {"K": 2048}), "gelu": (GELU, {"M": 450, "N": 600}),
}  # fmt: skip
OTHERS = {
    "norm": (NORM, {"M": 1701, "N": 128}), "rms": (RMS, {"M": 1701, "N": 128}), "taken rows": (TAKEN, {}),
    "rows that stay": (ROWS, {"M": 300}), "short rows that stay": (SHORT, {"M": 130}), "rope": (example("rope/rope_halves"), {}),
    "entropy": (example("norms/cross_entropy"), {}), "grouped queries": (example("attention/grouped_query"), {}),
    "attention of 256 keys": (example("flash_attention"), {"S": 512, "H": 3, "D": 64, "BM": 64, "BN": 256}),
    "causal, 256 keys, a tail": (example("flash_attention_causal"), {"S": 700, "H": 3, "D": 64, "BM": 64, "BN": 256}),
    "causal, a tail": (example("flash_attention_causal"), {"S": 333, "H": 6, "D": 32, "BM": 32, "BN": 64}),
}  # fmt: skip
KERNELS = {**PRODUCTS, **OTHERS}


def check(name: str, chip: str, most: int, **options: object) -> None:
    text, sizes = KERNELS[name]
    wrong = faults(kernel(text, **sizes), chip, most, **options)
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_candidates_of_a_kernel_whose_flags_run_out():
    check("two sums of short tiles", "950", 2)


@pytest.mark.long
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", KERNELS)
def test_candidates_of_kernels_of_many_kinds(name, chip):
    check(name, chip, 8)


@pytest.mark.long
@pytest.mark.parametrize("options", [{"deterministic": True}, {"exact_math": True}, {"effort": "full"}], ids=str)
@pytest.mark.parametrize("name", ["tails", "bf16", "norm", "causal, a tail"])
def test_candidates_of_other_searches(name, options):
    check(name, "910B2", 12, **options)
