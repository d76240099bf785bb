"""In which order statements of two cores stand, and what is told where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tile_eg
import tile_eg.language as T
from tests.frontend.expert.test_cross_modes import products_of_all
from tests.frontend.sequential import kernels
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Assign, For, If, Kernel, Stmt
from tile_eg.jit import CompiledKernel


def kernel_of(kernel: CompiledKernel) -> Kernel:
    found = kernel.searched()
    assert isinstance(found, CompiledKernel) and isinstance(found.kernel, Kernel)
    return found.kernel


def refused(kernel: CompiledKernel) -> TileError:
    with pytest.raises(tile_eg.TileError) as caught:
        kernel.searched()
    return caught.value


def loops(body: tuple[Stmt, ...]) -> Iterator[For]:
    for s in body:
        if isinstance(s, For):
            yield s
            yield from loops(s.body)
        elif isinstance(s, If):
            yield from loops((*s.then, *s.otherwise))


def lines(error: TileError) -> list[str]:
    """The lines of the source that a message shows: its own, and those of its notes."""
    places = [error.span, *(place for _, place in error.notes)]
    return [error.source.splitlines()[p.line - 1].strip() for p in places if p is not None]


@pytest.mark.slow
def test_loops_that_wait_for_one_another_become_one() -> None:
    outer = [s for s in kernel_of(kernels.attention()).body if isinstance(s, For) and s.extent == 3]
    assert len(outer) == 1


def test_what_no_flag_orders_is_told_with_both_statements() -> None:
    error = refused(kernels.biased(flagged=False))
    assert "the vector cores read `workspace` here, and no flag says that the cube core has written it" in error.message
    assert lines(error) == ["T.copy(workspace[vid * 16, 0], x)", "T.copy(c, workspace[0, 0])"]


def test_a_place_that_is_written_again_too_early_is_told() -> None:
    error = refused(kernels.biased(early=True))
    assert "the cube core writes `workspace` here, and no flag says that the vector cores have read it" in error.message


@pytest.mark.slow
def test_cores_that_wait_in_a_circle_have_no_order() -> None:
    error = refused(kernels.attention(crossed=True))
    assert "the cube core waits here for flag 1, which is not set by then" in error.message
    assert lines(error)[1] == 'T.set_cross_flag("MTE3", 1)'


def test_the_way_out_is_the_author_s_own_order() -> None:
    assert "leave `schedule` out" in refused(kernels.biased(flagged=False)).help


def test_what_is_loaded_a_trip_ahead_is_loaded_in_its_own() -> None:
    body = kernel_of(kernels.product()).body
    (k,) = [s for s in loops(body) if s.extent == 4]
    loads = [s for s in k.body if isinstance(s, Assign) and s.target.name in ("a", "b")]
    assert [(s.target.extents, str(s.value.starts[d])) for s, d in zip(loads, (1, 0), strict=True)] == [  # type: ignore[union-attr]
        ((32, 64), "(k * 64)"), ((64, 32), "(k * 64)"),
    ]  # fmt: skip


@pytest.mark.slow
def test_tiles_in_turn_are_the_blocks_of_a_grid() -> None:
    assert kernel_of(kernels.product(blocks=3)).grid[0][1] == 4


def test_flags_among_cores_of_one_kind_order_nothing_between_the_kinds() -> None:
    error = refused(products_of_all())
    assert "`workspace` is written and read in this kernel, in windows that differ" in error.message
    assert "leave `schedule` out" in error.help


def test_a_buffer_that_is_read_by_another_name_is_told() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float"), B: T.Tensor((16, 64), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((16, 64), "float")
            y = T.alloc_ub((16, 64), "float")
            T.annotate_address({x: 0, y: 0})
            with T.Scope("V"):
                T.copy(A[0, 0], x)
                T.copy(A[0, 0], y)
                T.barrier_all()
                T.tile.add(y, x, y)
                T.barrier_all()
                T.copy(y, B[0, 0])

    error = refused(tile_eg.compile(main, out_idx=[-1]))
    assert "`x` is read here, and shares its memory with `y`, which was written since" in error.message
