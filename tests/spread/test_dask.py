"""Items on a Dask cluster of several processes: one is killed, one is of another version, one has an NPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spread import work
from tests.spread.dask_cluster import DaskCluster
from tile_eg.errors import TileError
from tile_eg.spread import crew, spread

pytestmark = pytest.mark.slow
OLDER = "import tile_eg.version\ntile_eg.version.__version__ = '0.0.1'\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    pytest.importorskip("distributed", reason="dask is an extra: pip install 'tile_eg[dask]'")
    made = DaskCluster(tmp_path_factory.mktemp("dask"))
    try:
        made.worker("--name", "plain")
        made.worker("--name", "has an NPU", "--resources", "npu=1")
        made.wait_for(2)
        yield made
    finally:
        made.close()


@pytest.mark.slow
def test_values_come_in_the_order_of_their_items(cluster: DaskCluster) -> None:
    assert [o.value for o in spread(work.doubled, range(5), dask=cluster.address)] == [0, 2, 4, 6, 8]


def test_what_fails_is_named_and_stops_nothing_else(cluster: DaskCluster) -> None:
    found = spread(work.refused, range(4), dask=cluster.address)
    assert [o.error for o in found] == ["", "error: 1 is not liked", "KeyError: 'two'", ""]


def test_what_needs_an_npu_is_done_by_workers_that_have_one(cluster: DaskCluster) -> None:
    with crew(dask=cluster.address) as them:
        assert them.has("npu") and not them.has("gpu")
        assert len({o.value for o in them.each(work.process, range(6), needs="npu")}) == 1
        with pytest.raises(TileError, match="no worker of the cluster at .* has the resource 'gpu'"):
            list(them.each(work.process, range(6), needs="gpu"))


def test_a_worker_of_another_version_is_named_and_not_used(cluster: DaskCluster, tmp_path: Path) -> None:
    (tmp_path / "older.py").write_text(OLDER)
    older, told = cluster.worker("--preload", str(tmp_path / "older.py")), list[str]()
    cluster.wait_for(3)
    pids = {o.value for o in spread(work.process, range(8), dask=cluster.address, tell=told.append)}
    assert len(told) == 1 and "is not used: it has tile_eg 0.0.1, here it is" in told[0]
    assert older.pid not in pids
    older.kill()
    older.wait()
    cluster.wait_for(2)


def test_what_a_killed_worker_had_is_done_again(cluster: DaskCluster, tmp_path: Path) -> None:
    cluster.worker()
    cluster.wait_for(3)
    told: list[str] = []
    items = [(str(tmp_path), n) for n in range(8)]
    assert [o.value for o in spread(work.sometimes_dies, items, dask=cluster.address, tell=told.append)] == [*range(0, 16, 2)]
    assert (tmp_path / "died").exists() and any("is gone; what it had is done again" in line for line in told)


def test_an_address_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tile_eg.spread.cluster.ANSWER", 0.5)
    for address, why in (("tcp://127.0.0.1:9", "no answer within 0.5 seconds"), ("nonsense://x:1", "unknown address scheme")):
        with pytest.raises(TileError, match=f"there is no Dask scheduler at {address}: {why}"):
            crew(dask=address)


def test_what_is_no_address_makes_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distributed.Client", lambda *args, **options: pytest.fail("it fails once more when it is collected"))
    with pytest.raises(TileError, match="there is no Dask scheduler at nonsense: missing port number"):
        crew(dask="nonsense")


def test_a_cluster_without_workers_is_named(tmp_path: Path) -> None:
    empty = DaskCluster(tmp_path)
    try:
        empty.wait_for(0)
        with pytest.raises(TileError, match="has no worker that can be used"):
            crew(dask=empty.address)
    finally:
        empty.close()
