"""Loads to L1 with zeros around what there is in GM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_eg.emit.ascend_c.index import Scope, block
from tile_eg.ir.index import ONE, ZERO
from tile_eg.ir.program import Instr, Tile

Write = Callable[[Scope, Instr], list[str]]


def padded(s: Scope, i: Instr, load: Write, zero: Write) -> list[str]:
    """What there is of a window, and zeros before and behind it. They meet nowhere, so that no barrier stands between them."""
    dst, end = i.dst, i.bound + i.depth
    assert isinstance(dst, Tile)
    there = replace(i, dst=replace(dst, row=dst.row + i.bound), rows=i.depth, depth=ONE, bound=ZERO, form="flat")
    zeros = replace(there, op="l1_zero", srcs=(), form="window")
    before, behind = replace(zeros, dst=dst, rows=i.bound), replace(zeros, dst=replace(dst, row=dst.row + end), rows=i.rows - end)
    return [*_some(s, before, zero), *_some(s, there, load), *_some(s, behind, zero)]


def _some(s: Scope, i: Instr, write: Write) -> list[str]:
    """A copy, where it has any rows."""
    if s.high(i.rows) <= 0:
        return []
    text = write(s, i)
    return text if s.low(i.rows) > 0 else block(f"if ({s.cpp(i.rows)} > 0)", text)
