"""A mistake reaches its author without the way that it took through tile_eg."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

import tile_eg
from tile_eg.errors import TileError

HOUSE = str(Path(tile_eg.__file__).parent)
WRONG = """import tile_eg
import tile_eg.language as T

@tile_eg.jit
def made(n):
    @T.prim_func
    def k(X: T.Tensor((n, 16), "float32")):
        with T.Kernel(1):
            T.copy(X, [[[q]]])
    return k
"""


@pytest.fixture
def caught(module_of) -> TileError:
    with pytest.raises(TileError) as found:
        module_of(WRONG).made(8)
    return found.value


def test_the_traceback_holds_one_frame_of_the_house(caught: TileError) -> None:
    files = [f.filename for f in traceback.extract_tb(caught.__traceback__)]
    assert sum(f.startswith(HOUSE) for f in files) == 1


def test_no_other_error_is_shown_above_it(caught: TileError) -> None:
    assert caught.__cause__ is None
    assert caught.__suppress_context__


def test_a_notebook_shows_the_message_alone(caught: TileError) -> None:
    assert caught._render_traceback_() == str(caught).splitlines()
    assert caught._render_traceback_()[0] == "error: unknown name `q`"


def test_text_kernels_leave_by_the_same_door(tmp_path: Path) -> None:
    file = tmp_path / "k.tile"
    file.write_text("kernel k(X: f32[4]) -> Y: f32[4] { Y[0] = XX }")
    with pytest.raises(TileError) as found:
        tile_eg.load(file).compile()
    files = [f.filename for f in traceback.extract_tb(found.value.__traceback__)]
    assert sum(f.startswith(HOUSE) for f in files) == 1
