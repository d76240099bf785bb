"""Instructions that this architecture has not are refused by name, and told what does the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import kernel, run_vector

TENSORS = "LocalTensor<half> d(TPosition::VECCALC, 0, 256), a(TPosition::VECCALC, 4096, 256);\n"
CALLS = {
    "Scatter(d, a, a.ReinterpretCast<uint32_t>(), 0u, 64u);": "Scatter is not there on 2201.*Gather",
    "RpSort16<half>(d, a, 4);": "RpSort16 is not there on 2201.*Sort32",
    "Subs(d, a, half(1.0f), 64);": "Subs is not there on 2201.*Adds",
    "Neg<half, true>(d, a, 64, 1, UnaryRepeatParams(1, 1, 8, 8));": "Neg is not there on 2201.*Muls",
}


@pytest.mark.parametrize("call", CALLS)
def test_an_instruction_of_another_architecture_is_refused_with_what_does_the_same(call: str) -> None:
    with pytest.raises(Exception, match=CALLS[call]):
        run_vector(kernel("A", "AIV_ONLY", TENSORS + call), np.zeros(8, np.float32))
