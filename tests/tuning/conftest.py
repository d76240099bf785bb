"""A small kernel in a folder of its own, tuned once for all tests that look at what tuning leaves there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tile_eg.cli.app import run
from tile_eg.tuning import session
from tile_eg.tuning.trial import Checked, Trial

KERNEL = """\
kernel scaled[M=64, N=96](X: f32[M, N]) -> Y: f32[M, N] {
  grid b = ceildiv(M, 16)
  shared x: f32[16, N], s: f32[16]
  x = X[b*16, 0]
  s = rowsum(x)
  x = x * s[:, None]
  Y[b*16, 0] = x
}
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "scaled.tile").write_text(KERNEL)
    return tmp_path / "scaled.tile"


@pytest.fixture
def all_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates are not run: what is looked at is what becomes of those that are right."""

    def right(trial: Trial) -> Checked:
        blocks = trial.planned.program.blocks
        return Checked("", blocks, blocks)

    monkeypatch.setattr(session, "checked", right)


@pytest.fixture(scope="session")
def once_tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tuned") / "scaled.tile"
    file.write_text(KERNEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "checked", lambda trial: Checked("", 1, 1))
        assert run(["tune", str(file), "--budget", "3"]) == 0
    return file


@pytest.fixture
def tuned(once_tuned: Path, tmp_path: Path) -> Path:
    """The kernel with what tuning wrote beside it, in which another candidate than the search's own choice has won."""
    file = Path(shutil.copytree(once_tuned.parent, tmp_path / "own")) / once_tuned.name
    lines = Path(f"{file}.tuning.jsonl").read_text().splitlines()
    slower = json.loads(lines[-1])
    change(file, program=slower["program"], microseconds=slower["microseconds"])
    return file


def entry(file: Path) -> dict[str, object]:
    """The only entry beside a kernel."""
    (one,) = json.loads(Path(f"{file}.tuned.json").read_text())["kernels"]
    return one


def change(file: Path, **values: object) -> None:
    """The entry with other values."""
    path = Path(f"{file}.tuned.json")
    held = json.loads(path.read_text())
    held["kernels"][0] |= values
    path.write_text(json.dumps(held))
