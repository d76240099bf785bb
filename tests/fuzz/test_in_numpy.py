"""Random kernels give what NumPy gives, as the search schedules them, in the order of their statements, and of any size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tile_eg
from tests.fuzz import many_kinds, two_ways
from tests.fuzz.two_ways import IN_ORDER, Program
from tests.python.written import prim_func
from tile_eg.errors import TileError

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
AUTO = dict.fromkeys((tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC, tile_eg.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC), True)
WAYS: dict[str, Callable[[Program], str]] = {
    "searched": lambda p: p.text(), "in order": lambda p: p.text(IN_ORDER), "of any size": lambda p: p.text(dyn=True),
}  # fmt: skip
KINDS = {"f32": two_ways.drawn, "many kinds": many_kinds.drawn}
QUICK = range(1, 6)
ways = pytest.mark.parametrize("way", WAYS)
kinds = pytest.mark.parametrize("kind", KINDS)


def agrees(kind: str, way: str, seed: int) -> bool:
    """Whether the kernel is not refused; then it stores what there is by NumPy, but for the rounding of its sums."""
    program = KINDS[kind](seed)
    inputs = program.inputs(seed)
    want = program.meaning(inputs)
    places = list(range(len(inputs), len(inputs) + len(want)))
    kernel = prim_func(WAYS[way](program))
    try:
        got = tile_eg.jit(out_idx=places, pass_configs=AUTO, effort="none")(kernel)(*(a.copy() for a in inputs))
    except TileError:
        return False
    for x, y in zip(got, want, strict=True):
        there = np.isfinite(y)
        np.testing.assert_allclose(x[there], y[there], 2e-3, 2e-3, err_msg=f"{program.sizes}\n" + "\n".join(program.lines))
    return True


@pytest.mark.few(2)
@kinds
@pytest.mark.parametrize("way", ["searched", "in order"])
@pytest.mark.slow(but=1)
def test_a_kernel_gives_what_numpy_gives(kind: str, way: str) -> None:
    assert all(agrees(kind, way, seed) for seed in QUICK)


@pytest.mark.slow
def test_a_kernel_of_any_size_gives_what_numpy_gives() -> None:
    assert agrees("many kinds", "of any size", 100)


@pytest.mark.long
@kinds
@ways
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_many_kernels_give_what_numpy_gives(first: int, way: str, kind: str) -> None:
    assert sum(agrees(kind, way, seed) for seed in range(first, first + 50)) > 25


@pytest.mark.slow
def test_a_kernel_that_is_kept_as_written_at_some_sizes_is_compiled_for_the_others() -> None:
    assert agrees("f32", "of any size", 3400062)
