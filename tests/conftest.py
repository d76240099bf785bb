"""Options that the whole suite shares."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

os.environ["TILE_EG_NO_CACHE"] = "1"
"""Tests look at what is compiled now; those of the cache of compiled kernels switch it on, in a folder of their own."""

settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore")
settings.load_profile("repeatable")
"""The same examples in every run; `pytest --hypothesis-profile explore` draws others."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what came out as the new golden files")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
