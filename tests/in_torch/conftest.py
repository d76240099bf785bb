"""Kernels that several tests register. These tests need torch, and are left out where it is not installed: `make torch`."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tile_eg

EXAMPLES = Path(__file__).parents[2] / "examples"
_numbers = count()


@pytest.fixture
def fresh() -> str:
    """The name of an operator that is not registered yet: torch keeps them for the life of a process."""
    return f"tile_eg_tests::op{next(_numbers)}"


@pytest.fixture(scope="session")
def gemm() -> Any:
    return tile_eg.load(EXAMPLES / "gemm.tile")


@pytest.fixture(scope="session")
def softmax() -> Any:
    return tile_eg.load(EXAMPLES / "softmax.tile")
