"""Flags between cores of a kernel that calls T.sync_all get numbers that the meeting leaves free."""

from __future__ import annotations

from tile_eg.frontend.expert.cross_numbers import cross_numbered
from tile_eg.ir import index as ix
from tile_eg.ir.program import CrossSet, CrossWait, SyncAll

SIDE = ix.var("i") + 10
RANGES = {"i": (0, 2)}


def numbers(*meeting: SyncAll) -> tuple[list[object], int]:
    """Those of the flags 0 and 10 to 12, which the cube core sets and the vector cores wait for, and how many notes there are."""
    notes: list = []
    sets = (CrossSet("FIX", 0), CrossSet("FIX", SIDE), *meeting)
    cube, vector = cross_numbered((sets, (CrossWait(0), CrossWait(SIDE))), RANGES, notes)
    assert [n.id for n in cube[:2]] == [n.id for n in vector]
    return [n.id for n in vector], len(notes)


def test_flags_that_a_meeting_takes_move_and_keep_their_distances() -> None:
    assert numbers(SyncAll()) == ([3, ix.var("i")], 1)


def test_without_a_meeting_they_stay() -> None:
    assert numbers() == ([0, SIDE], 0)
