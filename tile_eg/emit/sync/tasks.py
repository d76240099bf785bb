"""How many tiles of a block synchronisation looks at: enough for every ring to come round, and the numbers to check it with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_eg.ir import index as ix
from tile_eg.ir.program import AIC, AIV, Instr, Node, Program, Tasks, Tile, walk


def lengths(program: Program) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(tiles to analyse, other numbers of tiles that the result must serve), the cheapest first.

    In one tile more than it has slots, a ring that turns once a tile comes round. The numbers that are checked hold every phase
    of rings of two and three slots, and the second time that they come round.
    """
    loops = [n for core in (AIC, AIV) for n in program.core(core) if isinstance(n, Tasks)]
    if not loops:
        yield 1, ()
        return
    most, ragged = loops[0].trips - bool(loops[0].behind), loops[0].until.value is None
    short = max(_turning(program, t) for t in loops) + 1
    for tiles in (short, 3 * short):
        if program.sizes:  # a block may have any number of them, none where all cores are launched
            yield tiles, (*range(program.sizes.blocks.value is None, tiles), tiles + 1)
            continue
        if tiles >= most:
            yield most, (most - 1,) if ragged else ()
            return
        yield tiles, (tiles - 1, tiles + 1)


def _turning(program: Program, loop: Tasks) -> int:
    """The slots of the deepest ring that turns with the tiles alone; 1 where there is none."""
    slots = {b.name: b.slots for b in program.buffers}
    instructions = (n for n in walk(loop.body) if isinstance(n, Instr))
    tiles = (o for i in instructions for o in (i.dst, *i.srcs) if isinstance(o, Tile))
    return max((slots[t.buffer] for t in tiles if ix.variables(t.slot) == {loop.var}), default=1)


def with_tiles(program: Program, tiles: int) -> Program:
    """The program with so many tiles a block."""

    def stream(core: str) -> tuple[Node, ...]:
        return tuple(replace(n, trips=tiles + bool(n.behind)) if isinstance(n, Tasks) else n for n in program.core(core))

    return replace(program, cube=stream(AIC), vector=stream(AIV))
