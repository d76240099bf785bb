"""Random and worst choices compute the same numbers as the reference, and the simulator finds nothing to blame in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.extract.kernels import CHIP, TRICKY, kernel, pricer
from tile_eg.compiler import meaning, plan
from tile_eg.egraph import saturate
from tile_eg.emit import lower
from tile_eg.emit.sync import synchronise
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.exact import Exact
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.kernel import Kernel

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {
    "gemm": {"M": 130, "N": 140, "K": 100, "BM": 64, "BN": 64},
    "flash_attention": {"S": 100, "H": 1, "D": 32, "BM": 32, "BN": 32},
    "flash_attention_rows": {"S": 64, "H": 1, "D": 32, "BM": 32, "BN": 32}, "softmax": {"M": 40, "N": 72},
    "matmul_add": {"M": 130, "N": 70, "K": 100}, "gemm_exp": {"M": 70, "N": 140, "K": 64}, "vector_add": {"M": 70, "N": 130},
}  # fmt: skip


def arrays_for(k: Kernel) -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    return {t.name: random.uniform(-1, 1, t.shape).astype(t.dtype.numpy) for t in k.tensors if not t.output}


def check_numbers(k: Kernel, extractor: Exact) -> None:
    graph = saturate(to_values(k), CHIP)
    found = extractor.extract(graph, CHIP, pricer(graph), 1)
    assert found.schedules, [str(r) for _, r in found.refused]
    arrays = arrays_for(k)
    run = plan(synchronise(lower.plan(found.best, CHIP))).run(arrays, strict=False)
    assert not run.findings, [str(f) for f in run.findings]
    for name, want in meaning(k, arrays).items():
        np.testing.assert_allclose(run[name].astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-3)


EXTRACTORS = [Exact(), Worst(), *(Random(s) for s in range(3))]
NAMES = [e.name + str(getattr(e, "seed", "")) for e in EXTRACTORS]


@pytest.mark.parametrize("extractor", EXTRACTORS, ids=NAMES)
@pytest.mark.parametrize("name", sorted(TRICKY))
def test_every_choice_computes_a_tricky_kernel(name, extractor):
    check_numbers(kernel(TRICKY[name]), extractor)


@pytest.mark.slow
@pytest.mark.parametrize("extractor", EXTRACTORS, ids=NAMES)
@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_choice_computes_an_example(name, extractor):
    check_numbers(kernel((EXAMPLES / f"{name}.tile").read_text(), **SMALL[name]), extractor)
