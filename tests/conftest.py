"""Options that the whole suite shares."""

from __future__ import annotations

import gc
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
"""Processes that tests start import the tree in which the tests lie, wherever they are started."""
os.environ["TILE_EG_NO_CACHE"] = "1"
"""Tests look at what is compiled now; those of the cache of compiled kernels switch it on, in a folder of their own."""
os.environ["TILE_EG_RAISE_FAULTS"] = "1"
"""A fault of tile_eg is one here, also where a user's call would go on without the text for all sizes."""

gc.set_threshold(50_000, 20, 20)
"""Tests keep what they compile: to look through all of it as often as Python does by itself takes a part of the suite's time."""

UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
"""No test fails because the machine has other things to do."""
settings.register_profile("repeatable", derandomize=True, **UNTIMED)
settings.register_profile("explore", **UNTIMED)
settings.load_profile("repeatable")
"""The same examples in every run; `pytest --hypothesis-profile explore` draws others."""


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: they need not be looked through again each time that garbage is collected."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """pytest collects garbage five times at the end, all that tests kept: the process ends anyway."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_a_few(items)
    mark_quick([item for item in items if not item.get_closest_marker("long")])


def leave_a_few(items: list[pytest.Item]) -> None:
    """Of a test that is marked `few(n)`, marks as `long` all cases but n, spread evenly over them, the first among them."""
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("long"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for of_one in cases.values():
        most = of_one[0].get_closest_marker("few").args[0]
        left = {case * len(of_one) // most for case in range(most)}
        for number, item in enumerate(of_one):
            if number not in left:
                item.add_marker("long")


def mark_quick(items: list[pytest.Item]) -> None:
    """Marks as `quick` the first tests of those that are `slow(but=...)`, and all that are not slow."""
    seen = Counter[str]()
    for item in items:
        slow = [(node.nodeid.partition("[")[0], mark.kwargs.get("but", 0)) for node, mark in item.iter_markers_with_node("slow")]
        if all(seen[place] < but for place, but in slow):
            seen.update(place for place, _ in slow)
            item.add_marker("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what came out as the new golden files")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
