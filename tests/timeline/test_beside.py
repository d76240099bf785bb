"""Windows that lie over one another come from HBM once, as far as they have the same elements."""

from __future__ import annotations

from dataclasses import replace

import pytest
from timeline_programs import vector_program

from tile_eg.ir.index import BLOCK, Expr, const, less, var
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Gm, Instr, Loop, Program, Tile
from tile_eg.ops.types import F32
from tile_eg.timeline.accesses import accesses
from tile_eg.timeline.reuse import misses

COLS, BLOCKS, TRIPS = 512, 4, 64
AT = (var("j") * BLOCKS + var(BLOCK)) * (8 * COLS)
"""Eight rows of a tensor for each block in each trip."""


def stencil(*loads: tuple[Expr, int, int], guard: Expr | None = None) -> Program:
    """In each trip windows that begin there, of so many rows and columns; the last one where the guard holds."""
    nodes = [Instr("gm_to_ub", Tile("a"), (Gm("x", at, COLS),), const(rows), const(cols)) for at, rows, cols in loads]
    if guard is not None:
        nodes[-1] = replace(nodes[-1], when=guard)
    p = vector_program(Loop("j", TRIPS, tuple(nodes)), blocks=BLOCKS)
    return replace(p, tensors=(Tensor("x", F32, (8 * BLOCKS * TRIPS + 8, COLS), False), p.tensors[1]))


def shares(p: Program) -> list[float]:
    """Of each load, what comes from HBM, if L2 holds the windows of a few trips."""
    return list(misses(p, accesses(p), 16 * 8 * COLS * 4, BLOCKS).values())


def test_a_window_one_column_on_brings_a_column() -> None:
    assert shares(stencil((AT, 8, 511), (AT + 1, 8, 511))) == pytest.approx([1.0, 1 / 511])


def test_a_window_two_rows_and_a_column_back_brings_both() -> None:
    first, second = shares(stencil((AT + 2 * COLS + 1, 6, 511), (AT, 8, 512)))
    assert first == 1.0 and second == pytest.approx(1 - 6 * 511 / (8 * 512))


def test_a_window_that_begins_far_on_brings_most_of_it() -> None:
    first, second = shares(stencil((AT, 8, 300), (AT + 212, 8, 300)))
    assert first == 1.0 and second == pytest.approx(212 / 300)


def test_rows_that_the_tile_above_has_too_come_once() -> None:
    assert shares(stencil((AT, 10, COLS))) == pytest.approx([8 / 10])


def test_a_window_that_some_of_the_blocks_read_brings_its_own() -> None:
    assert shares(stencil((AT, 8, 511), (AT + 1, 8, 511), guard=less(var(BLOCK), 2)))[1] > 0.4


def test_strips_that_begin_some_rows_further_are_others() -> None:
    p = stencil((AT, 10, COLS))
    load = p.vector[0].body[0]
    strips = replace(p, vector=(replace(p.vector[0], body=(replace(load, form="strips"),)),))
    assert shares(strips) == [1.0]
