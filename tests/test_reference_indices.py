"""Indices that are read from the inputs of a call: all trips of a loop at once say what its trips say one by one."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir import reference_indices
from tile_eg.ir.kernel import Assign
from tile_eg.ir.reference_indices import check_indices
from tile_eg.ir.reference_places import Env

ROWS, TOLD = 50, 28


@T.prim_func
def gathered(
    K: T.Tensor((ROWS, 64), "float16"), Pages: T.Tensor((9,), "int32"), At: T.Tensor((TOLD,), "int32"),
    Y: T.Tensor((32, 64), "float16"),
):  # fmt: skip
    with T.Kernel(2) as b:
        at, x = T.alloc_shared((8,), "int32"), T.alloc_shared((16, 64), "float16")
        for k in T.serial(2):
            T.copy(At[b * 16 + k * 8], at)
            for i in T.serial(8):
                T.copy(K[Pages[at[i] // 8] * 8 + at[i] % 8, :], x[k * 8 + i, :])
        T.copy(x, Y[b * 16, 0])


def told(kernel: object, **inputs: np.ndarray) -> str:
    try:
        check_indices(kernel, inputs)  # type: ignore[arg-type]
    except TileError as e:
        return str(e)
    return ""


def indices(seed: int, bad: str) -> dict[str, np.ndarray]:
    """Pages and places in them, all of them inside but for one that is named."""
    random = np.random.default_rng(seed)
    pages, at = random.permutation(6).repeat(2)[:9].astype(np.int32), random.integers(0, 48, TOLD).astype(np.int32)
    which = random.integers(TOLD)
    if bad == "page":
        pages[at[which] // 8] = random.choice((-1, 7))
    elif bad == "place":
        at[which] = random.choice((-3, 1 << 20))
    return {"K": np.zeros((ROWS, 64), np.float16), "Pages": pages, "At": at}


@pytest.mark.parametrize("bad", ["", "page", "place"])
@pytest.mark.parametrize("seed", range(4))
def test_trips_at_once_are_as_trips_one_by_one(seed: int, bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tile_eg.jit(gathered).kernel
    found = told(kernel, **indices(seed, bad))
    monkeypatch.setattr(reference_indices._Inside, "surely_inside", lambda *_: False)
    assert found == told(kernel, **indices(seed, bad))
    assert ("is read is" in found) == (bad != "")


def test_a_loop_of_windows_alone_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    assign = reference_indices._Indices.assign

    def noted(self: reference_indices._Indices, s: Assign, env: Env) -> None:
        seen.append(s.target.name)
        assign(self, s, env)

    monkeypatch.setattr(reference_indices._Indices, "assign", noted)
    assert not told(tile_eg.jit(gathered).kernel, **indices(0, ""))
    assert seen == ["at"] * 4


SUMS = """
kernel sums(X: f32[4, 64], p: i32[1]) -> O: f32[1, 64] {
  grid bx = 1
  shared x: f32[1, 64]
  x = cumsum(X[p[0] : p[0] + 1, 0 : 64])
  O[0, 0] = x
}
"""


def test_what_an_operation_on_a_whole_tile_reads_is_asked_too() -> None:
    wrong = told(load_text(SUMS).instantiate(), X=np.zeros((4, 64), np.float32), p=np.full(1, 9, np.int32))
    assert "an index of `X` that is read is 9: dimension 0 has 4 elements" in wrong
