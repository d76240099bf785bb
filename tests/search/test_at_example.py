"""A kernel of open sizes is looked at with sizes that stand for all."""

from pathlib import Path

import pytest

from tile_eg.cli import app
from tile_eg.errors import TileError
from tile_eg.search.at_example import EXAMPLES, at_example

ADDED = """kernel added[M: dyn](X: f32[M, 64], W: f32[48]) -> Y: f32[M, 64] {
  grid b = ceildiv(M, 32)
  shared x: f32[32, 64], w: f32[48]
  x = X[b*32, 0]
  w = W[0]
  Y[b*32, 0] = x + w
}
"""


def refused(number: int, at: int) -> int:
    if number < at:
        raise TileError(f"less than {at}")
    return number


def test_the_first_example_that_is_right_is_taken() -> None:
    assert at_example(["M", "N"], lambda at: refused(at["N"], 512)) == (512, {"M": 512, "N": 512})


def test_a_fault_at_every_example_is_that_at_the_first() -> None:
    with pytest.raises(TileError, match="less than 4096"):
        at_example(["M"], lambda at: refused(at["M"], 4096))


def test_where_the_faults_differ_the_sizes_of_the_first_are_told() -> None:
    with pytest.raises(TileError) as told:
        at_example(["M"], lambda at: refused(at["M"], 2000 + at["M"]))
    assert told.value.notes == ((f"so it is at M={EXAMPLES[0]}; give sizes that the kernel is for", None),)


def test_a_mistake_of_the_kernels_own_is_not_one_of_its_open_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "added.tile").write_text(ADDED)
    assert app.run(["emit", str(tmp_path / "added.tile")]) == 1
    assert "the shapes of f32[32, 64] and f32[48] do not fit" in capsys.readouterr().err.splitlines()[0]
