"""Random and worst choices, of the order of tiles too, compute the same numbers as the reference; the simulator minds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import TRICKY, kernel
from tests.frontend.test_atomic import IN_A_LOOP
from tests.test_atomic import EXP, SPLIT_K
from tests.test_whole_numbers import COLUMNS
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.exact import Exact

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {
    "gemm": {"M": 130, "N": 140, "K": 100, "BM": 64, "BN": 64},
    "flash_attention": {"S": 100, "H": 1, "D": 32, "BM": 32, "BN": 32},
    "flash_attention_rows": {"S": 64, "H": 1, "D": 32, "BM": 32, "BN": 32}, "softmax": {"M": 40, "N": 72},
    "matmul_add": {"M": 130, "N": 70, "K": 100}, "gemm_exp": {"M": 70, "N": 140, "K": 64}, "vector_add": {"M": 70, "N": 130},
    "flash_attention_causal": {"S": 100, "H": 1, "D": 32, "BM": 32, "BN": 32}, "gelu_mul": {"M": 40, "N": 72, "BM": 32},
    "gemm_transposed": {"M": 70, "N": 80, "K": 100, "BM": 64, "BN": 64}, "layer_norm": {"M": 20, "N": 72},
    "gemm_int8": {"M": 70, "N": 80, "K": 100, "BM": 64, "BN": 64},
    "online_softmax": {"M": 40, "N": 136, "BM": 16, "BN": 64}, "rms_norm": {"M": 20, "N": 72},
}  # fmt: skip


EXTRACTORS = [Exact(), Worst(), *(Random(s) for s in range(3))]
NAMES = [e.name + str(getattr(e, "seed", "")) for e in EXTRACTORS]
FEWER = [e if n < 3 else pytest.param(e, marks=pytest.mark.long) for n, e in enumerate(EXTRACTORS)]


@pytest.mark.few(20)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", FEWER, ids=NAMES)
@pytest.mark.parametrize("name", sorted(TRICKY))
def test_every_choice_computes_a_tricky_kernel(name, extractor):
    check_numbers(kernel(TRICKY[name]), extractor)


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", FEWER, ids=NAMES)
@pytest.mark.parametrize("text", [SPLIT_K, EXP, IN_A_LOOP, COLUMNS], ids=["sums", "exp of sums", "a loop of sums", "bytes"])
def test_every_choice_adds_up_and_multiplies_bytes(text, extractor):
    check_numbers(kernel(text), extractor)


def test_every_example_is_tried():
    assert SMALL.keys() == {f.stem for f in EXAMPLES.glob("*.tile")}


@pytest.mark.few(16)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", FEWER, ids=NAMES)
@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_choice_computes_an_example(name, extractor):
    check_numbers(kernel((EXAMPLES / f"{name}.tile").read_text(), **SMALL[name]), extractor)


ORDERS = {"gemm": (4, 2, 1), "flash_attention": (1, 0, 0), "softmax": (1, 0, 0), "gemm_exp": (3, 1, 0), "vector_add": (1, 1, 0)}


@pytest.mark.few(7)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", [Exact(), Worst(), Random(5)], ids=lambda e: e.name)
@pytest.mark.parametrize("name", sorted(ORDERS))
def test_every_choice_computes_many_tiles_a_block(name, extractor):
    check_numbers(kernel((EXAMPLES / f"{name}.tile").read_text(), **SMALL[name]), extractor, ORDERS[name])
