"""Texts of many instructions on small tiles: compiling them takes longer than running them."""

from __future__ import annotations

import pytest

from tile_eg.simulator import build


@pytest.fixture(autouse=True)
def texts_compiled_without_optimising(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "KERNEL_FLAGS", tuple("-O0" if flag == "-O1" else flag for flag in build.KERNEL_FLAGS))
