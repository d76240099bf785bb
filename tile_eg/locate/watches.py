"""A program that tells, behind each instruction, where it is and what its result holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from tile_eg.ir.index import BLOCK, EACH, ONE, SUB, Expr, evaluate, var, variables
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.program import AIC, Buffer, Formula, Gm, Instr, Loop, Node, Print, Program, Tile, When
from tile_eg.ir.program.held import Held
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.simulator.watch import Record

WATCHED = (Level.UB, Level.L1, Level.L0C, Level.WS)


@record
class Watched:
    """An instruction whose result is watched. Its records have the tile of the grid, and then the values of `variables`."""

    number: int
    instr: Instr
    held: Held
    buffer: Buffer | None

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """What the place of its result, and the trips that it is of, are made of."""
        found = frozenset().union(*map(variables, self._expressions())) | ({SUB} if self.held.share is not None else set())
        return tuple(sorted(found - {EACH}))

    def _expressions(self) -> list[Expr]:
        i = self.instr
        place = [i.dst.offset] if isinstance(i.dst, Gm) else [i.dst.row, i.dst.col]
        stride = [i.dst.stride] if isinstance(i.dst, Gm) and isinstance(i.dst.stride, Expr) else []
        return [i.rows, i.cols, *place, *stride, *(trip for _, trip in self.held.trips)]

    @property
    def known(self) -> bool:
        """Whether all of that is known outside of the kernel: no number that its scalar unit keeps decides over it."""
        return not any(all_elements_in(e) for e in self._expressions())

    def node(self) -> Node:
        """What tells it."""
        args = tuple(Formula("index", (e,), whole=True) for e in (self.held.tile, *map(var, self.variables)))
        shown, count = (None, 0) if self.buffer is None else (self.instr.dst, self.buffer.slot_bytes)
        told = Print(args=args, shown=shown, id=self.number, count=count, watched=True)
        return told if self.instr.when == ONE else When(self.instr.when, (told,))

    def values(self, record: Record) -> dict[str, int]:
        """The variables in a record."""
        return dict(zip(self.variables, record.values[1:], strict=True))

    def begins(self, record: Record) -> tuple[int, ...]:
        """Where its result begins in the slot."""
        dst, values = self.instr.dst, self.values(record)
        return () if isinstance(dst, Gm) else (evaluate(dst.row, values), evaluate(dst.col, values))

    def trips(self, values: Mapping[str, int]) -> dict[str, int]:
        return {name: evaluate(trip, values) for name, trip in self.held.trips}


def with_watches(program: Program, results: bool = True) -> tuple[Program, list[Watched]]:
    """The program with a watch behind what stores, and (with `results`) behind what computes a value of the kernel."""
    found: list[Watched] = []
    buffers = {b.name: b for b in program.buffers}

    def inserted(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        out: list[Node] = []
        for n in nodes:
            n = replace(n, body=inserted(n.body)) if isinstance(n, Loop | When) else n
            out.append(n)
            if isinstance(n, Instr) and (watched := _watched(n, buffers, len(found), results)):
                found.append(watched)
                out.append(watched.node())
        return tuple(out)

    return replace(program, cube=inserted(program.cube), vector=inserted(program.vector)), found


def _watched(i: Instr, buffers: Mapping[str, Buffer], number: int, results: bool) -> Watched | None:
    if isinstance(i.dst, Gm):
        watched = Watched(number, i, i.held or Held(None, tile=var(BLOCK)), None)
        return watched if watched.known else None
    buffer = buffers[i.dst.buffer]
    if not results or i.held is None or i.held.term is None or buffer.level not in WATCHED:
        return None
    if (buffer.level is Level.UB) == (i.core == AIC) and buffer.level is not Level.WS:  # in the memory of another core
        return None
    watched = Watched(number, i, i.held, buffer)
    return watched if watched.known else None


def named(watched: Watched) -> dict[str, Any]:
    """The instruction in plain values: what it is called, the rules behind it, the memory of its result."""
    memory = str(watched.buffer.level) if watched.buffer else "GM"
    return {"instruction": watched.instr.op, "rules": list(watched.instr.rules), "memory": memory}


def slot_of(i: Instr) -> Tile:
    assert isinstance(i.dst, Tile)
    return i.dst
