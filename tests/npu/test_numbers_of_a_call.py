"""Numbers that each call passes, at a launch on an NPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.npu.cann import StandIn
from tests.test_passed_numbers import G, W, sgd
from tests.test_passed_whole_numbers import X, moved
from tile_eg.npu.arrays import array


@pytest.mark.slow
def test_a_launch_on_an_npu_passes_them(npu: StandIn) -> None:
    w, g = array(W.copy()), array(G)
    loads = npu.calls("aclrtBinaryLoadFromData")
    for lr in (0.5, 0.25):
        sgd(w, g, lr, 0.0)
    wanted = W - np.float32(0.5) * G - np.float32(0.25) * G
    np.testing.assert_allclose(w.synchronize().numpy(), wanted, rtol=1e-6, atol=1e-6)
    assert npu.calls("aclrtBinaryLoadFromData") - loads == 1


@pytest.mark.slow
def test_whole_ones_too(npu: StandIn) -> None:
    x, y = array(X), array(np.zeros_like(X))
    loads = npu.calls("aclrtBinaryLoadFromData")
    for source, target in ((7, 0), (0, 40)):
        moved(x, y, source, target)
    found = y.synchronize().numpy()
    np.testing.assert_array_equal(found[[*range(16), *range(40, 56)]], X[[*range(7, 23), *range(16)]])
    assert npu.calls("aclrtBinaryLoadFromData") - loads == 1
