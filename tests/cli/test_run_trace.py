"""`tile-eg run --trace`: a file that Perfetto opens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tile_eg.cli import app

EXAMPLE = Path(__file__).parents[2] / "examples" / "vector_add.tile"


@pytest.mark.slow
def test_run_writes_the_timeline_where_it_is_asked_to(tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    assert app.run(["run", str(EXAMPLE), "--trace", str(out)]) == app.GOOD
    assert {"X", "s", "f", "C"} <= {e["ph"] for e in json.loads(out.read_text())["traceEvents"]}


@pytest.mark.slow
def test_a_trace_that_cannot_be_written_is_a_users_error(tmp_path: Path) -> None:
    assert app.run(["run", str(EXAMPLE), "--trace", str(tmp_path / "none" / "trace.json")]) == app.USER_ERROR
