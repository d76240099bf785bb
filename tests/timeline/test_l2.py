"""What comes from HBM: L2 holds what was touched last, whatever order the tiles come in."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from timeline_programs import TILE, vector_program

from tile_eg.chips import load_chip
from tile_eg.ir.index import BLOCK, EACH, ONE, Expr, const, less, minimum, read, var
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Gm, Instr, Let, Loop, Node, Program, Tile, When
from tile_eg.ir.program.tasks import tasks
from tile_eg.ops.types import F32, I32
from tile_eg.timeline.accesses import accesses, sharing
from tile_eg.timeline.engine import run
from tile_eg.timeline.l2 import Room
from tile_eg.timeline.reuse import hbm_seconds, misses, traffic, with_reads

CHIP = load_chip("910B2")
PAGE = 64 * 64  # elements of a load


def program(*loops: tuple[str, int], at: Expr, pages: int, blocks: int = 1, guard: Expr | None = None) -> Program:
    """Loads of a page at page `at` of a tensor of so many pages, in nested loops."""
    nodes: tuple[Node, ...] = (Instr("gm_to_ub", Tile("a"), (Gm("x", at * PAGE, 64),), *TILE),)
    if guard is not None:
        nodes = (When(guard, nodes),)
    for name, trips in reversed(loops):
        nodes = (Loop(name, trips, nodes),)
    p = vector_program(*nodes, blocks=blocks)
    return replace(p, tensors=(Tensor("x", F32, (pages * PAGE,), False), p.tensors[1]))


def missed(p: Program, l2_pages: int, at_once: int = 48) -> float:
    return next(iter(misses(p, accesses(p), l2_pages * PAGE * 4, at_once).values()))


def gather(rows: int, times: int, *names: str, columns: int = 1) -> Program:
    """Each table names `times` as many rows as a tensor has, which are gathered in tiles of so many columns."""
    place = var(BLOCK) * 64 + var(EACH)
    at = [read(name, place, rows - 1) * (64 * columns) + var("c") * 64 for name in names]
    nodes = [Instr("gm_to_ub", Tile("a"), (Gm("x", offset, 64 * columns),), *TILE) for offset in at]
    p = vector_program(Loop("c", columns, tuple(nodes)), blocks=rows * times // 64)
    tables = [Tensor(name, I32, (rows * times,), False) for name in dict.fromkeys(names)]
    return replace(p, tensors=(Tensor("x", F32, (rows * 64 * columns,), False), p.tensors[1], *tables))


def gathered(rows: int, times: int, in_l2: int, columns: int = 1) -> float:
    """The share that comes from HBM of `times` as many rows as a tensor has, gathered from anywhere, where L2 holds `in_l2`."""
    p = gather(rows, times, "token", columns=columns)
    return next(iter(misses(p, accesses(p), in_l2 * 64 * columns * 4, 16).values()))


OUTER, J, BLOCK_PAGE = var("i"), var("j"), var(BLOCK)


def test_what_fits_comes_from_hbm_once() -> None:
    assert missed(program(("i", 10), ("j", 8), at=J, pages=8), l2_pages=8) == pytest.approx(0.1)


def test_a_scan_that_does_not_fit_finds_nothing_again() -> None:
    assert missed(program(("i", 10), ("j", 9), at=J, pages=9), l2_pages=8) == 1.0


def test_the_same_pages_in_bands_that_fit_are_found_again() -> None:
    banded = program(("band", 3), ("i", 10), ("j", 3), at=var("band") * 3 + J, pages=9)
    assert missed(banded, l2_pages=8) == pytest.approx(0.1)


def test_blocks_side_by_side_bring_a_page_once() -> None:
    shared = program(("j", 20), at=J, pages=20, blocks=4)
    assert missed(shared, l2_pages=8) == pytest.approx(0.25)


def test_a_later_wave_finds_what_an_earlier_one_left() -> None:
    assert missed(program(at=BLOCK_PAGE % 4, pages=20, blocks=40), l2_pages=8, at_once=4) == pytest.approx(0.1)
    assert missed(program(at=BLOCK_PAGE % 20, pages=20, blocks=40), l2_pages=8, at_once=4) == 1.0


def test_a_guard_keeps_what_it_leaves_out_from_l2() -> None:
    half = program(("i", 2), ("j", 16), at=J, pages=16, guard=less(J, 8))
    assert missed(half, l2_pages=8) == pytest.approx(0.5)


def test_rows_that_are_gathered_again_are_found_as_likely_as_l2_holds_them() -> None:
    assert gathered(4096, times=8, in_l2=4096) == pytest.approx(1 / 8, rel=0.01)
    assert gathered(4096, times=8, in_l2=2048) == pytest.approx(0.5, rel=0.15)
    assert gathered(4096, times=8, in_l2=64) > 0.85


def test_columns_of_a_gathered_row_are_not_taken_for_one_another() -> None:
    assert gathered(1024, times=2, in_l2=1023, columns=4) == gathered(1024, times=2, in_l2=1023)


def test_each_table_names_rows_of_its_own() -> None:
    p = gather(4096, 1, "token", "other")
    first, second = misses(p, accesses(p), 4095 * 64 * 4, 16).values()
    assert first > second and first + second == pytest.approx(1 - math.exp(-2), rel=0.05)


def test_rows_that_one_table_names_twice_are_found_again() -> None:
    p = gather(4096, 1, "token", "token")
    assert sum(misses(p, accesses(p), 4095 * 64 * 4, 16).values()) == pytest.approx(1 - math.exp(-1), rel=0.05)


@pytest.mark.slow
def test_gathered_rows_that_l2_holds_are_found_again_in_loops_beyond_those_that_are_followed() -> None:
    p = gather(4096, 1, "token")
    again = replace(p, blocks=16, vector=(Loop("i", 300, (Loop("j", 10, p.vector),)),))
    assert next(iter(misses(again, accesses(again), 2048 * 64 * 4, 16).values())) < 1 / 2000


def test_loops_beyond_those_that_are_followed_count_as_one_window() -> None:
    deep = program(("i", 300), ("j", 400), at=J, pages=400)
    assert missed(deep, l2_pages=399) == 1.0
    assert missed(program(("i", 300), ("j", 400), at=OUTER * 400 + J, pages=120_000), l2_pages=399) == 1.0


def test_pages_of_windows_that_overlap_are_found_again_in_loops_beyond_those_that_are_followed() -> None:
    sliding = program(("i", 300), ("j", 10), at=OUTER + J, pages=309)
    assert missed(sliding, l2_pages=20) == pytest.approx(309 / 3000)
    apart = program(("i", 300), ("j", 10), at=OUTER * 10 + J, pages=3000)
    assert missed(apart, l2_pages=20) == 1.0


def test_a_guard_that_leaves_out_the_first_trips_inside_leaves_out_no_window() -> None:
    late = program(("i", 300), ("j", 10), at=J, pages=30, guard=less(3, J))
    assert missed(late, l2_pages=20) == missed(program(("i", 300), ("j", 10), at=J, pages=30), l2_pages=20) < 0.01


def test_cores_that_read_one_address_are_counted() -> None:
    p = program(("j", 4), at=J + BLOCK_PAGE // 8, pages=40, blocks=24)
    assert list(sharing(accesses(p), 24).values()) == [8.0]


def test_cores_that_read_one_address_wait_for_each_other_in_the_first_wave_only() -> None:
    apart, together = (run(program(("j", 64), at=at, pages=8000, blocks=48), CHIP) for at in (J + BLOCK_PAGE * 64, J * 1))
    path = CHIP.path("gm_to_ub")
    each = 32 * path.same_line + PAGE * 4 / path.same_rate
    assert together.block_cycles == pytest.approx(64 * 48 * each, rel=0.05)
    assert apart.block_cycles != together.block_cycles
    again = run(program(("j", 64), at=J * 1, pages=8000, blocks=96), CHIP)
    assert again.cycles < 2 * again.block_cycles


def _sharing(results: int) -> Program:
    """Each of 24 blocks computes as many results, one after the other, from 64 pages that all blocks read."""
    store = Instr("ub_to_gm", Gm("y", (BLOCK_PAGE * 8 + var("task") * PAGE), 64), (Tile("a"),), *TILE)
    p = program(("task", results), ("j", 64), at=J * 1, pages=64, blocks=24)
    task = p.vector[0]
    return replace(
        p,
        vector=(replace(task, body=(*task.body, store)),),
        tensors=(*p.tensors, Tensor("y", F32, (24 * 8 * PAGE,), True)),
    )


def test_cores_are_in_step_until_they_have_stored_a_result() -> None:
    one, eight = (run(_sharing(n), CHIP).cycles for n in (1, 8))
    alone = run(replace(_sharing(1), blocks=1), CHIP).cycles
    assert eight < 8 * one / 2
    assert one > 1.3 * alone


def _stored_and_read(rows_apart: int) -> Program:
    """Each of 64 tasks stores a page with the cube core, and the vector core reads rows of the page so many rows further."""
    page = var("task") * PAGE
    store = Instr("fixpipe", Gm("x", page, 64), (Tile("c"),), *TILE)
    load = Instr("gm_to_ub", Tile("a"), (Gm("x", page + rows_apart * 64, 64),), *TILE)
    p = vector_program(Loop("task", 64, (load,)))
    return replace(p, cube=(Loop("task", 64, (store,)),), tensors=(Tensor("x", F32, (65 * PAGE,), True), p.tensors[1]))


@pytest.mark.parametrize(("rows_apart", "share"), [(0, 0.0), (32, 0.0), (64, 1.0)])
def test_what_the_launch_wrote_last_is_found_in_l2(rows_apart: int, share: float) -> None:
    assert missed(_stored_and_read(rows_apart), 8) == share


def test_reads_have_of_hbm_what_writes_leave() -> None:
    assert with_reads(CHIP, 2e9, 1e9).shared.hbm_read == pytest.approx(2e9 / hbm_seconds(CHIP, 2e9, 1e9))


def test_reads_have_half_of_hbm_however_much_is_written() -> None:
    assert with_reads(CHIP, 1e6, 1e9).shared.hbm_read == CHIP.shared.reads_least * CHIP.shared.hbm_read


def test_reads_alone_have_all_of_hbm() -> None:
    assert with_reads(CHIP, 1.0, 0.0) is CHIP


def stored(tasks: int, *after: Node) -> Program:
    """One core stores so many pages, one after the other."""
    store = Instr("ub_to_gm", Gm("x", var("task") * PAGE, 64), (Tile("a"),), *TILE)
    p = vector_program(Loop("task", tasks, (store,)), *after)
    return replace(p, tensors=(Tensor("x", F32, (tasks * PAGE,), True), p.tensors[1]))


def pushed(p: Program, l2_pages: int) -> float:
    return traffic(p, accesses(p), Room(l2_pages * PAGE * 4, l2_pages * PAGE * 4), 48).pushed


def test_what_is_written_stays_in_l2_as_far_as_it_has_room() -> None:
    assert pushed(stored(8), 9) == 0
    assert pushed(stored(8), 6) == pytest.approx(2 / 8)


def test_what_is_read_later_pushes_out_what_is_written() -> None:
    load = Instr("gm_to_ub", Tile("a"), (Gm("y", var("j") * PAGE, 64),), *TILE)
    p = stored(8, Loop("j", 4, (load,)))
    assert pushed(replace(p, tensors=(p.tensors[0], Tensor("y", F32, (4 * PAGE,), False))), 8) == pytest.approx(4 / 8)


def test_loops_that_are_not_followed_to_their_end_push_out_alike() -> None:
    assert pushed(stored(5000), 1000) == pytest.approx(0.8, abs=0.01)


def turns(tiles: int, page: Expr) -> Program:
    """24 blocks go through the tiles, and load a page for each."""
    load = Instr("gm_to_ub", Tile("a"), (Gm("x", page * PAGE, 64),), *TILE)
    loop = tasks((load,), 24, [Let("tile", var("task") * 24 + var(BLOCK), tiles - 1)], {"task": "task", "tile": "tile"})
    return replace(vector_program(loop, blocks=24), tensors=(Tensor("x", F32, (64 * PAGE,), False),))


def pages_of_hbm(p: Program) -> float:
    return run(p, CHIP).hbm_cycles / CHIP.clock_mhz / 1e6 * CHIP.shared.hbm_read / (PAGE * 4)


def test_hbm_brings_what_all_blocks_ask_for_where_some_have_a_tile_less() -> None:
    assert pages_of_hbm(turns(32, var("tile"))) == pytest.approx(32)
    assert pages_of_hbm(turns(48, var("tile"))) == pytest.approx(48)


def test_what_a_block_reads_again_for_its_next_tile_comes_from_hbm_once_however_many_tiles_it_has() -> None:
    assert pages_of_hbm(turns(32, var(BLOCK))) == pytest.approx(24)
    assert pages_of_hbm(turns(48, var(BLOCK))) == pytest.approx(24)


def test_blocks_that_a_guard_leaves_out_read_nothing() -> None:
    some = program(("j", 8), at=J, pages=8, blocks=4, guard=less(BLOCK_PAGE, 2))
    assert missed(some, l2_pages=8) == pytest.approx(0.5)
    assert pages_of_hbm(some) == pytest.approx(8)


def cut(rows: Expr, guard: Expr = ONE) -> Program:
    """Four blocks with a tile of up to 64 rows each of a tensor of 200 rows, in trips of a loop that the guard chooses."""
    load = Instr("gm_to_ub", Tile("a"), (Gm("x", var(BLOCK) * PAGE, 64),), rows, TILE[1], when=guard)
    p = vector_program(Loop("k", 4, (load,)), blocks=4)
    return replace(p, tensors=(Tensor("x", F32, (200 * 64,), False), p.tensors[1]))


def test_a_tile_that_the_tensor_ends_in_is_no_hit() -> None:
    once = cut(minimum(const(64), 200 - var(BLOCK) * 64), less(var("k"), 1))
    assert missed(once, l2_pages=8) == pytest.approx(1.0)
    assert pages_of_hbm(once) == pytest.approx(200 / 64)


def test_trips_that_a_guard_leaves_out_find_nothing() -> None:
    assert missed(cut(const(50), less(var("k"), 2)), l2_pages=8) == pytest.approx(0.5)


def test_rows_that_a_tensor_counts_are_as_many_as_a_tile_holds() -> None:
    counted = cut(minimum(read("n", var(BLOCK), 200), const(50)), less(var("k"), 1))
    assert accesses(counted)[0].bytes == 50 * 64 * 4
    assert run(counted, CHIP).bytes["GM->UB"] == 4 * 50 * 64 * 4
