"""Kernels that are kept as they are written on architecture 3510: the same numbers as on 2201."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontend.expert import kernels, test_between_cores, test_cross_modes
from tests.frontend.sequential import kernels as by_hand
from tests.frontend.sequential.test_numbers import arrays
from tile_eg.jit import CompiledKernel

KERNELS = {
    "vectors": kernels.add, "products": kernels.gemm, "slots": kernels.ring, "handed over": kernels.handed_over,
    "softmax": by_hand.softmax, "both cores": by_hand.attention, "copied between cores": test_between_cores.chained,
    "vector cores": test_cross_modes.exchanged,
}  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", list(KERNELS))
def test_a_kept_kernel_gives_the_same_on_both(name: str) -> None:
    kernel = KERNELS[name]()
    given = arrays(kernel)
    results = [np.asarray(on(kernel, chip)(*[np.array(a) for a in given])) for chip in ("910B2", "950")]
    assert np.array_equal(*results)


def on(kernel: CompiledKernel, chip: str) -> Any:
    return CompiledKernel(kernel.kernel, kernel.out_idx, kernel.workspace_idx, chip)


@pytest.mark.parametrize("halves", [True, False])
def test_copies_between_cores_take_the_direct_paths(halves: bool) -> None:
    kernel = test_between_cores.chained(2, halves)
    text = str(on(kernel, "950").compile().program)
    assert "fixpipe x <- c" in text and "ub_to_l1 p" in text
    assert on(kernel, "950").compile().program.workspace == 0
    a, b = test_between_cores.operands()
    assert np.abs(on(kernel, "950")(a, b) - test_between_cores.meaning(a, b)).max() < 2e-2
