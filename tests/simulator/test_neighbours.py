"""Buffers side by side in UB: what overlaps by declaration alone is fine, what meets in bytes that are in use is found."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import gm, kernel, run_vector


def findings(used: int) -> list[str]:
    """Three tensors declared with 128 elements, 96 apart; the first `used` of each are worked on."""
    tensors = ", ".join(f"{name}(TPosition::VECCALC, {i * 96 * 4}, 128)" for i, name in enumerate("xyz"))
    body = f"""{gm("A B C", "float", 128)} LocalTensor<float> {tensors};
DataCopy(x, gmA, {used}); DataCopy(y, gmB, {used}); ORDER(MTE2_V);
Add(z, x, y, {used}); ORDER(V_MTE3); DataCopy(gmC, z, {used});"""
    a = np.zeros(128, np.float32)
    return [f.kind for f in run_vector(kernel("A B C", "AIV_ONLY", body), a, a, a.copy(), inout=True).findings]


@pytest.mark.parametrize("used", [88, 96])
def test_tensors_that_overlap_by_declaration_alone_are_not_blamed(used: int) -> None:
    assert findings(used) == []


def test_tensors_that_meet_in_bytes_that_are_in_use_are_found() -> None:
    assert "overlap" in findings(104)
