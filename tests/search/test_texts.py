"""The texts of candidates: only what would be chosen is written."""

from __future__ import annotations

import pytest

from tests.explore.kernels import kernel
from tile_eg.emit import ascend_c
from tile_eg.search.compiler import lower


@pytest.mark.slow
def test_what_is_not_chosen_is_not_written_until_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    real = ascend_c.kernel_text
    monkeypatch.setattr(ascend_c, "kernel_text", lambda program: (written.append(program), real(program))[1])
    low = lower(kernel("gemm"))
    before = len(written)
    assert low.source and before == len(written) < len(low.ranked)
    assert len(low.candidates) == len(low.ranked) and len(written) > before
