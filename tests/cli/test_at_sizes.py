"""`tile-eg explain --at M=1,128`: the cost model is asked at several sizes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tile_eg.cli import options
from tile_eg.cli.app import run
from tile_eg.errors import TileError

COPY = """kernel copy[M: dyn, N=32](A: f32[M, N]) -> C: f32[M, N] {
  grid b = ceildiv(M, 16)
  shared a: f32[16, N]
  a = A[b*16, 0]
  C[b*16, 0] = a
}
"""


@pytest.mark.slow
def test_each_choice_of_sizes_is_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "copy.tile").write_text(COPY)
    assert run(["explain", str(tmp_path / "copy.tile"), "--at", "M=16,64", "--without", "blocks-together"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["M", "predicted", "blocks", "bound", "by", "schedule"]
    cells = [re.split("  +", row) for row in rows[:2]]
    assert [(size, blocks) for size, _, blocks, *_ in cells] == [("16", "1"), ("64", "4")]


def test_the_last_name_varies_fastest() -> None:
    assert [tuple(s.values()) for s in options.several_sizes(["M=1,2", "N=3,4"])] == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_what_is_no_size_is_told() -> None:
    with pytest.raises(TileError, match="--at M=x: a size is a whole number"):
        options.several_sizes(["M=1,x"])


def test_a_name_that_is_given_again_has_all_its_numbers() -> None:
    assert [s["M"] for s in options.several_sizes(["M=1", "M=4,1"])] == [1, 4]


def test_one_argument_may_have_the_numbers_of_two_names() -> None:
    assert [tuple(s.items()) for s in options.several_sizes(["M=1,2,N=3"])] == [(("M", 1), ("N", 3)), (("M", 2), ("N", 3))]


def test_a_size_that_no_call_tells_is_not_priced_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "copy.tile").write_text(COPY.replace("M: dyn", "M=16"))
    assert run(["emit", str(tmp_path / "copy.tile"), "--at", "MM=16"]) == 1
    assert "--at MM: no size of the kernel" in capsys.readouterr().err


def test_the_profile_of_a_kernel_for_all_sizes_asks_for_its_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "copy.tile").write_text(COPY)
    assert run(["explain", str(tmp_path / "copy.tile"), "--profile"]) == 1
    assert "the size `M` has no value" in capsys.readouterr().err
