"""Trips that the block decides: at which numbers of them synchronisation is found, and at which others it is checked.

What is found must serve every number that occurs. A long loop has a first part, a steady one that repeats itself once all rings
came round, and a last part; so the numbers to look at are those where these parts overlap, each phase of the rings behind them,
and one at which all rings came round twice. A loop that goes on from tile to tile does the last part of one beside the first part
of the next: there the numbers that end so are looked at before those that begin so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tile_eg.emit.sync.trace import Counts
from tile_eg.ir.index import BLOCK, Expr, var, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.program import AIC, AIV, Let, Loop, Program, Tasks, When, walk
from tile_eg.ir.program.tasks import counted_by, numbers_of_trips, tile_of
from tile_eg.ir.sizes import sizes_in
from tile_eg.timeline.expressions import compiled

MANY = 256  # more trips than are looked at, whatever rings and skews there are
LEAST = 3  # trips at which what is in the loop is not taken for what is outside of it


def usual(program: Program) -> Counts:
    """The trips at which flags are found, by the name of their number."""
    long = _skew(program) + 2 * (max((b.slots for b in program.buffers), default=1) + 1)
    return {let.name: (max(LEAST, min(let.most, long)),) for let in counted_by(program)}


def checked(program: Program) -> Iterator[tuple[int, Counts]]:
    """Tiles of a block, and the trips that each of them has by name, at which what was found is looked at again.

    Blocks of a tile each have one of these numbers; a block that goes through tiles has them one after the other, small ones
    between large ones, or the least of them each time, or, where a loop goes on, those that meet.
    """
    lets = counted_by(program)
    if not lets:
        return
    most = _skew(program) + math.lcm(*(b.slots for b in program.buffers)) + 1
    small = {let.name: [n for n in sorted(_occurring(program, let)) if n <= most] or [let.most] for let in lets}
    length = max(map(len, small.values()))
    mixed = {name: _mixed([found[k % len(found)] for k in range(length)]) for name, found in small.items()}
    if any(isinstance(n, Tasks) for core in (AIC, AIV) for n in program.core(core)):
        yield length + 1, mixed
        yield 2 * max(b.slots for b in program.buffers) + 1, {name: found[:1] for name, found in mixed.items()}
        if going_on := _going_on(program):
            (tasks, _), late = going_on[0], max(_late(loop) for _, loop in going_on)
            ((now, _),) = tasks.before
            if pairs := meeting(tasks, late, small[now]):
                yield len(pairs), {now: pairs}
        return
    yield from ((1, {name: (found[k],) for name, found in mixed.items()}) for k in range(length))


def _going_on(program: Program) -> list[tuple[Tasks, Loop]]:
    """The loops over tiles, and those in them that go on from tile to tile: one for each core."""
    tops = [n for core in (AIC, AIV) for n in program.core(core) if isinstance(n, Tasks) and n.before]
    return [(n, x) for n in tops for x in n.body if isinstance(x, Loop)]


def meeting(tasks: Tasks, late: int, found: list[int]) -> tuple[int, ...]:
    """Of these numbers of trips, each that ends beside the next tile behind it, which is each of those that are over by then, and
    one that is not: of long ones the least with as many rounds behind its last trip. A tile is beside the one before it for the
    first `late` rounds."""
    ((now, _),) = tasks.before
    rounds = next(compiled(let.value) for let in tasks.lets if variables(let.value) == {now})
    short, long = ([n for n in found if (n <= late) == small] for small in (True, False))
    least = {rounds({now: n}) - n: n for n in reversed(long)}
    ends = [n for n in (*short, *least.values()) if rounds({now: n}) - n < late]
    return tuple(n for a in ends for b in (*short, *long[:1]) for n in (a, b))


def _late(loop: Loop) -> int:
    """In how many of its first rounds some step is at the tile before, at the most: what is that tile's stands beside this."""
    conditions = (n.condition for n in walk(loop.body) if isinstance(n, When))
    asked = (c for e in conditions for part in _parts(e) if part.op == "mul" for c in part.args if isinstance(c, Expr))
    limits = (c.args[1].value for c in asked if c.op == "lt" and c.args[0] == var(loop.var))
    return max((n for n in limits if n is not None), default=0)


def _parts(e: Expr) -> Iterator[Expr]:
    """An expression and all that it is made of."""
    yield e
    for part in e.args:
        if isinstance(part, Expr):
            yield from _parts(part)


def _mixed(found: list[int]) -> tuple[int, ...]:
    """First, last, second, last but one, ..."""
    return tuple(found[k // 2 if k % 2 == 0 else -1 - k // 2] for k in range(len(found)))


def _skew(program: Program) -> int:
    """The most trips that a counted loop has beyond its number."""
    most = {let.name: let.most for let in counted_by(program)}
    if joined := next((n for n in (*program.cube, *program.vector) if isinstance(n, Tasks) and n.before), None):
        none = dict.fromkeys(numbers_of_trips(joined), 0)
        return max(compiled(let.value)(none) for let in joined.lets if variables(let.value) & none.keys())
    loops = (n for core in (AIC, AIV) for n in walk(program.core(core)) if isinstance(n, Loop))
    counted = (n for n in loops if n.until is not None and not isinstance(n, Tasks))
    return max((compiled(n.until)(most) - max(most.values()) for n in counted if n.until is not None), default=0)


def _occurring(program: Program, let: Let) -> set[int]:
    """Every value that a number of trips has in some block or for some tile; of those that sizes decide, also by how many tiles
    there are, the small ones; any where it is read."""
    if elements_in(let.value):
        return set(range(let.least, min(let.most + 1, MANY)))
    if let.value.value is not None:
        return {let.value.value}
    if program.sizes is not None or sizes_in(let.value):
        return set(range(let.least, MANY))
    loops = [n for core in (AIC, AIV) for n in program.core(core) if isinstance(n, Tasks) and let in n.lets]
    value = compiled(let.value)
    if not loops:
        return {value({BLOCK: block}) for block in range(program.blocks)}
    tile, there = tile_of(loops[0], program), {loops[0].var: 0, loops[0].behind: 1}
    return {value({tile.name: n, **there}) for n in range(tile.most + 1)}
