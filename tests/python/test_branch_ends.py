"""Branches that leave a tile of which a tensor's end has cut something off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import NotSearched


def sums(*lines: str) -> np.ndarray:
    """The sums of the rows of `z`, of 32 columns; of `x` the first 8 exist."""
    body = "\n".join(f"        {line}" for line in lines)
    kernel = prim_func(f'''
@T.prim_func
def f(A: T.Tensor((32, 40), "float32"), V: T.Tensor((32,), "float32")):
    with T.Kernel(2) as cid:
        x, z = T.alloc_shared((16, 32), "float32"), T.alloc_shared((16, 32), "float32")
        u = T.alloc_shared((16,), "float32")
        T.copy(A[cid * 16, 32], x)
{body}
        T.reduce_sum(z, u, dim=1)
        T.copy(u, V[cid * 16])
''')
    found: Any = tile_eg.jit(out_idx=[1], effort="none")(kernel)(np.ones((32, 40), np.float32))
    return found


IN_ORDER = pytest.mark.filterwarnings("ignore:(?s).*is done in the order of its statements:tile_eg.errors.TileWarning")


@pytest.mark.slow
@IN_ORDER
@pytest.mark.parametrize("branch", ["T.fill(z, 1.0)", "for i, k in T.Parallel(16, 32): z[i, k] = 1.0"])
def test_a_branch_that_makes_all_of_a_tile_that_ends(branch: str) -> None:
    np.testing.assert_array_equal(sums("T.copy(x, z)", "if cid == 0:", f"    {branch}"), np.repeat(np.float32([32, 8]), 16))


@pytest.mark.slow
@IN_ORDER
def test_a_branch_that_makes_a_tile_end() -> None:
    np.testing.assert_array_equal(sums("T.fill(z, 1.0)", "if cid == 0:", "    T.copy(x, z)"), np.repeat(np.float32([8, 32]), 16))


@pytest.mark.slow
def test_a_branch_may_change_a_tile_that_ends() -> None:
    np.testing.assert_array_equal(
        sums("T.copy(x, z)", "if cid == 0:", "    T.tile.add(z, z, 1.0)"), np.repeat(np.float32([16, 8]), 16)
    )


@pytest.mark.slow
def test_all_of_a_tile_takes_the_place_of_what_a_branch_has_cut_off() -> None:
    np.testing.assert_array_equal(
        sums("y = T.alloc_shared((16, 32), 'float32')", "T.copy(x, y)", "T.fill(z, 2.0)", "if cid == 0:",
             "    T.tile.add(y, y, 1.0)", "T.copy(A[cid * 16, 0], z)"), np.full(32, 32.0),
    )  # fmt: skip


NO_TRIP = ("T.fill(z, 1.0)", "for j in T.serial(2 - 2 * cid):", "    T.tile.add(z, z, x)")


def test_what_a_loop_without_trips_leaves_whole_is_not_summed_up_to_where_its_trips_end() -> None:
    with pytest.raises(NotSearched, match="takes no trip in some blocks, where more columns of `z` exist than its trips leave"):
        sums(*NO_TRIP)


def test_what_a_loop_without_trips_leaves_is_not_followed_in_order() -> None:
    with pytest.raises(NotSearched) as e:
        sums('T.printf("")', *NO_TRIP)
    assert "how much of z exists is not followed so far" in e.value.render()


@pytest.mark.slow
@pytest.mark.filterwarnings("error::tile_eg.errors.TileWarning")
def test_an_accumulator_of_a_loop_without_trips_ends_where_it_is_stored() -> None:
    kernel = prim_func('''
@T.prim_func
def f(A: T.Tensor((21, 32), "float32"), V: T.Tensor((21,), "float32")):
    with T.Kernel(2) as cid:
        x, u, v = T.alloc_shared((16, 32), "float32"), T.alloc_shared((16,), "float32"), T.alloc_shared((16,), "float32")
        T.fill(u, 1.0)
        for j in T.serial(2 - 2 * cid):
            T.copy(A[cid * 16, 0], x)
            T.reduce_sum(x, v, dim=1)
            T.tile.add(u, u, v)
        T.copy(u, V[cid * 16])
''')
    ones = np.ones((21, 32), np.float32)
    np.testing.assert_array_equal(tile_eg.jit(out_idx=[1], effort="none")(kernel)(ones), [65.0] * 16 + [1.0] * 5)
