"""`run` gives a kernel that is kept an array for a tensor that it changes in its place, and for no other that it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tile_eg.cli.app import run

KERNEL = """
import tile_eg
import tile_eg.language as T

@tile_eg.jit
def changed():
    @T.prim_func
    def kernel(X: T.Tensor((128,), "float32"), Y: T.Tensor((128,), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            x = T.alloc_ub((32,), "float32")
            at = cid * 64 + vid * 32
            with T.Scope("V"):
                T.copy({first}[at], x)
                T.set_flag("mte2", "v", 0); T.wait_flag("mte2", "v", 0)
                T.tile.add(x, x, 1.0)
                T.set_flag("v", "mte3", 0); T.wait_flag("v", "mte3", 0)
                T.copy(x, Y[at])
                T.pipe_barrier("all")
                T.copy(x, X[at])
    return kernel
"""


def file(folder: Path, first: str) -> str:
    (folder / "kernel.py").write_text(KERNEL.replace("{first}", first))
    return str(folder / "kernel.py")


def test_what_it_held_is_drawn_and_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", file(tmp_path, "X"), "--save", str(tmp_path / "kept")]) == 0
    assert "good" in capsys.readouterr().out
    assert np.ptp(np.load(tmp_path / "kept" / "X.npy")) > 1
    given = np.arange(128, dtype=np.float32)
    np.save(tmp_path / "X.npy", given)
    assert run(["run", file(tmp_path, "X"), "--input", f"X={tmp_path / 'X.npy'}", "--save", str(tmp_path / "kept")]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "kept" / "X.npy"), given + 1)
