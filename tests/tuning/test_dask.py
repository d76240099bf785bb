"""Tuning on a Dask cluster of several processes, of which one is killed: nothing is lost, and the result is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spread.dask_cluster import DaskCluster
from tests.tuning.conftest import KERNEL
from tile_eg.cli import sources
from tile_eg.search import search_options
from tile_eg.tuning import Asked, Tuning, Watch, tune

OPEN = KERNEL.replace("N=96]", "N=96, B=auto]").replace("16", "B")


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(tmp_path: Path, all_right: None) -> None:
    pytest.importorskip("distributed", reason="dask is an extra: pip install 'tile_eg[dask]'")
    (tmp_path / "scaled.tile").write_text(OPEN)
    kernel, options = sources.read(tmp_path / "scaled.tile", {}), search_options(effort="full")
    cluster, told = DaskCluster(tmp_path), list[str]()
    try:
        cluster.worker()
        lost = cluster.worker()
        cluster.wait_for(2)

        def seen(found: Tuning) -> None:
            if found.tried == 2:
                lost.kill()

        found = tune(kernel, "910B2", options, Asked(8, "timeline", dask=cluster.address), Watch(told.append, seen))
    finally:
        cluster.close()
    assert any("is gone; what it had is done again" in line for line in told)
    here = tune(kernel, "910B2", options, Asked(8, "timeline"), Watch())
    assert [(r.program, r.microseconds, r.wrong) for r in found.records] == [
        (r.program, r.microseconds, r.wrong) for r in here.records
    ]
    assert found.tried == 8 and not any(r.wrong for r in found.records)
