"""Cores that take tiles in turn: not all of them have a last one, and those that do share the memory system with fewer."""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.ir.index import ZERO, Expr, less, var
from tile_eg.ir.program import Instr, Tasks
from tile_eg.timeline.accesses import Access
from tile_eg.timeline.works import Price, Pricer


class InTurn:
    """Prices of a program whose cores take tiles in turn: those `before` the last turn, and those of the `last` one."""

    def __init__(self, before: Pricer, last: Pricer, found: Sequence[Access]) -> None:
        self.chip, self.both = before.chip, (before, last)
        self.turns = {id(a.instr): less(v.trips - 2, var(v.var)) for a in found for v in a.loops if isinstance(v, Tasks)}

    def turn(self, instr: Instr) -> Expr:
        """1 in the last turn of an instruction that touches GM, 0 else."""
        return self.turns.get(id(instr), ZERO)

    def price(self, instr: Instr, rows: int, cols: int, depth: int, turn: int = 0) -> Price:
        """Of an instruction with these valid sizes, in the last turn where `turn` is 1."""
        return self.both[turn].price(instr, rows, cols, depth)
