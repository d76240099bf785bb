"""The stand-in for CANN, once for all tests of a process; what is built there lies in a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.npu.cann import StandIn, installed


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("cann"))


@pytest.fixture(scope="session")
def acl(home: Path) -> StandIn:
    return StandIn(home)


@pytest.fixture
def npu(acl: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A machine with an NPU: CANN is found, and its ACL is the stand-in."""
    monkeypatch.setenv("ASCEND_HOME_PATH", str(acl.home))
    acl.soc("Ascend910B2")
    yield acl
    acl.null(False)
