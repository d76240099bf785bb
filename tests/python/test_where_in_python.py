"""`kernel.where(...)`: the first value that differs from the meaning, or from a function of NumPy or torch."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

X = np.random.default_rng(0).uniform(-1, 1, (32, 64)).astype(np.float32)
WRONG_EXP = """(rule ((= p (at v (UB s) r)) (= v (Un "exp" x))) ((union p (VUn "flat" "relu" (at x (UB s) r))))
      :ruleset vec :name "lie" :law implements)"""


def kernel(**options):
    @tile_eg.jit(out_idx=[-1], **options)
    def make():
        @T.prim_func
        def grown(X: T.Tensor((32, 64), "float32"), Y: T.Tensor((32, 64), "float32")):
            with T.Kernel(2) as bx:
                x = T.alloc_shared((16, 64), "float32")
                T.copy(X[bx * 16, 0], x)
                for i, j in T.Parallel(16, 64):
                    x[i, j] = T.exp(x[i, j])
                T.copy(x, Y[bx * 16, 0])

        return grown

    return make()


@pytest.mark.slow
def test_a_right_kernel_has_no_such_value():
    found = kernel().where(X)
    assert found.good and found.first is None and str(found) == "no value differs from the kernel's meaning"


@pytest.mark.slow
def test_a_wrong_instruction_is_named_with_both_numbers():
    first = kernel(rules=[WRONG_EXP]).where(X).first
    i, j = first.element
    assert first.instruction == "vrelu" and first.want == pytest.approx(np.exp(X[i, j])) and first.got == max(X[i, j], 0)


@pytest.mark.slow
def test_a_function_is_held_against_the_outputs():
    found = kernel(without=("blocks-together",)).where(X, against=lambda x: np.exp(x) + (np.arange(32)[:, None] == 17))
    assert (found.first.name, found.first.element, found.first.grid) == ("Y", (17, 0), {"bx": 1})


def test_a_function_that_rounds_as_it_returns_is_no_fault():
    assert kernel().where(X, against=lambda x: np.exp(x.astype(np.float64)).astype(np.float32)).good


def test_a_torch_function_gets_tensors():
    torch = pytest.importorskip("torch")

    def function(x):
        assert isinstance(x, torch.Tensor)
        return torch.exp(x)

    function.__globals__["torch"] = torch
    try:
        assert kernel().where(X, against=function).good
    finally:
        del function.__globals__["torch"]


def test_arrays_stay_as_they_are():
    before = X.copy()

    def greedy(x):
        x[:] = 0
        return np.exp(before)

    assert kernel().where(X, against=greedy).good and (before == X).all()


@pytest.mark.slow
def test_a_tile_kernel_takes_its_sizes_from_the_arrays(tmp_path):
    (tmp_path / "k.tile").write_text(
        "kernel k[M](X: f32[M, 64]) -> Y: f32[M, 64] {\n  grid bx = M\n  shared x: f32[1, 64]\n"
        "  x = X[bx, 0]\n  Y[bx, 0] = x * 2\n}\n"
    )
    found = tile_eg.load(tmp_path / "k.tile").where(X, against=lambda x: np.where(np.arange(64) == 9, 3 * x, 2 * x))
    assert found.first.element == (0, 9) and found.first.span.line == 5


def test_arrays_that_do_not_fit_are_a_mistake():
    with pytest.raises(TileError, match="shape"):
        kernel().where(X[:16])
