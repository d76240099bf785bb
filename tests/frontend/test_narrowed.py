"""Whether a value can be made with fewer valid elements is asked, and nothing is tried for it."""

from __future__ import annotations

import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.ssa.joined_ends import direction
from tile_eg.frontend.ssa.tiles import Tiles, Unlike
from tile_eg.ir import index as ix
from tile_eg.ir.index import const
from tile_eg.ir.values import Term
from tile_eg.ops.types import F32

TILES = Tiles()
HALF = TILES.fill(0.5, (8, 16), F32, None)
LOADED = TILES.make(None, "load", HALF, const(0), 16, rows=8, cols=16, dtype=F32, vrows=const(8), vcols=const(16))
STATE = TILES.make(None, "arg", 1, 0, rows=8, cols=16, dtype=F32, vrows=const(8), vcols=const(16))


def test_what_is_made_of_operands_that_may_end_earlier_does() -> None:
    made = TILES.with_extents(TILES.binary("add", HALF, HALF, None), const(4), None)
    assert isinstance(made, Term) and made.vrows == const(4)


def test_what_a_loop_holds_does_not_and_says_which_extents_differ() -> None:
    found = TILES.with_extents(TILES.binary("add", HALF, STATE, None), const(4), None)
    assert found == Unlike((const(8), const(16)), (const(4), const(16)))


def nest(*tiles: Term) -> Term:
    elements = [TILES.make(None, "elem", t, dtype=F32) for t in tiles]
    scalar = elements[0] if len(tiles) == 1 else TILES.make(None, "s_binary", "add", *elements, dtype=F32)
    return TILES.make(None, "nest", scalar, rows=8, cols=16, dtype=F32, vrows=const(8), vcols=const(16))


def test_what_an_element_loop_reads_ends_where_its_result_does() -> None:
    made = TILES.with_extents(nest(nest(LOADED), HALF), const(4), None)
    assert made.op == "nest" and made.args[0].args[1].args[0].args[0].args[0].vrows == const(4)


@pytest.mark.parametrize("tile", [HALF, STATE], ids=["of numbers", "of a state"])
def test_what_has_no_operand_that_ends_is_a_part(tile: Term) -> None:
    made = TILES.with_extents(nest(tile), const(4), None)
    assert (made.op, made.args[1], made.vrows) == ("piece", nest(tile), const(4))


def test_who_needs_it_gets_the_error() -> None:
    with pytest.raises(TileError, match="8 x 16 valid elements meet a window of 4 x 16"):
        TILES.narrowed(STATE, const(4), None, None)


def test_whether_an_extent_grows_from_trip_to_trip_is_not_known_where_it_is_read() -> None:
    rows = ix.minimum(16, ix.read("n", ix.var("t"))) - ix.var("t")
    assert direction(rows, "t") is None
    assert direction(ix.minimum(16, 40 - ix.var("t") * 16), "t") == -1
