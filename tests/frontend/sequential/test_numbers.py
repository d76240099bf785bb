"""A kernel that is searched gives what its author's order gives: both run in the simulator, on the same arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tile_eg
from tests.frontend.sequential import kernels
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.jit import CompiledKernel

DRAWN = {
    "product": st.fixed_dictionaries(
        {"k_tiles": st.integers(1, 5), "slots": st.integers(2, 3), "blocks": st.integers(1, 4), "relu": st.booleans()}
    ),
    "added": st.fixed_dictionaries({"trips": st.integers(1, 5), "ahead": st.booleans(), "cols": st.sampled_from([8, 64, 72])}),
    "softmax": st.fixed_dictionaries({"cols": st.sampled_from([16, 64, 128])}),
    "biased": st.fixed_dictionaries({"tiles": st.integers(1, 4)}),
    "attention": st.fixed_dictionaries({"trips": st.integers(1, 4)}),
}
ROUNDED = {"attention": 2e-3, "softmax": 1e-6, "product": 1e-4, "biased": 1e-4}
"""How far two right results may lie apart: sums in another order, and quotients as products."""


def arrays(kernel: CompiledKernel, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    made = {*kernel.out_idx, *kernel.workspace_idx}
    dtypes = {"f16": np.float16, "f32": np.float32}
    tensors = [t for i, t in enumerate(kernel.kernel.tensors) if i not in made]
    return [rng.uniform(-1, 1, t.shape).astype(dtypes[str(t.dtype)]) for t in tensors]


def searched(kernel: CompiledKernel) -> CompiledKernel:
    found = kernel.searched()
    assert isinstance(found, CompiledKernel)
    return found


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", list(DRAWN))
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_the_search_and_the_author_agree(name: str, data: Any) -> None:
    kernel = getattr(kernels, name)(**data.draw(DRAWN[name]))
    given_arrays = arrays(kernel)
    mine, theirs = (np.asarray(k(*given_arrays), np.float64) for k in (kernel, searched(kernel)))
    assert np.abs(mine - theirs).max() <= ROUNDED.get(name, 0)


def test_the_author_keeps_his_kernel_unless_it_is_to_be_searched() -> None:
    kernel = kernels.biased()
    assert isinstance(kernel.kernel, KeptKernel)
    assert isinstance(searched(kernel).kernel, Kernel)


def test_jit_takes_the_word_too() -> None:
    function = kernels.softmax
    assert isinstance(searched(function()).kernel, Kernel)
    factory = tile_eg.jit(lambda: None, schedule="search")
    assert factory.__jit_impl__.schedule == "search"


def test_another_word_is_refused() -> None:
    with pytest.raises(tile_eg.TileError, match="schedule is 'search', or left out, not 'auto'"):
        tile_eg.jit(lambda: None, schedule="auto")
