"""How many buffers each tile has that comes into a loop or goes from one pipe to another in it: a decision for each of them.

The e-graph offers the depths (`rules/50_loops.egg`), the model of a choice counts their bytes, and this is what a depth hides.
With one buffer, the pipe that moves a tile waits until the others have done with it, and they wait for the move. With two and
more they work at the same time; what is left then is a handover between pipes in each trip, and the pause that a load for several
trips makes. Such a load comes before all others of its trips: with one buffer, it waits until all work of the last trip is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tile_eg.egraph import Demand, Node
from tile_eg.extract.pricing import Price
from tile_eg.extract.selection import trips_ahead
from tile_eg.ops.physical import DEEP, MOVES

ALONE = 1


class Buffer(NamedTuple):
    """The buffers of one tile: how many, the pipe that moves it, the cycles that this takes in a trip, the trips that a load
    brings at once, and whether the move is out of them.

    A `late` one stands behind a wait for other cores, or is what they wait for: it cannot run ahead, and fewer buffers make the
    loop no longer. `refill` is the chip's (`Sync.refill`).
    """

    depth: int
    pipe: str
    cycles: int
    trips: int = 1
    out: bool = False
    late: bool = False
    refill: Sequence[int] = (0,)

    @staticmethod
    def of(move: Node, decision: Node, price: Price, refill: Sequence[int]) -> Buffer:
        term = MOVES[move.op]
        late = term.source == "WS" or (term.crosses and term.target != "WS")
        return Buffer(depth_of(decision), price.pipe, price.total, trips_ahead(move), term.empties, late, refill)

    @property
    def handover(self) -> int:
        """Cycles a trip that it leaves uncovered: one wait for flags in so many trips.

        Who computes a tile has other work before the next one is written, so that two buffers hide as much as three.
        """
        deepest = len(self.refill)
        depth = deepest if self.out and self.depth > ALONE else min(self.depth, deepest)
        return -(-self.refill[depth - 1] // self.trips)

    @property
    def burst(self) -> int:
        """Cycles of one load."""
        return self.cycles * self.trips


def depth_of(decision: Node) -> int:
    """How many buffers a node says."""
    return decision.payload[-1] if decision.op == "Buffers" else ALONE


def place_of(decision: Node) -> Demand:
    """What one buffer of a decision holds, of one trip."""
    tile, (level, share), region, *_ = decision.payload
    return Demand(tile, level, share, region)


def trips_in(decision: Node) -> int:
    """Of how many trips one buffer holds the tiles."""
    return decision.payload[3]


def decided(node: Node) -> int | None:
    """The class that decides how many buffers a move's tile has; None where nothing does."""
    return node.children[-1] if node.op in DEEP else None


def buffered(move: Node) -> int:
    """The class of the tile whose buffers a move fills or empties."""
    term = MOVES[move.op]
    return move.cls if term.staged else move.children[term.operand]


def buffers(nodes: Iterable[Node], prices: list[Price], refill: Sequence[int]) -> dict[int, list[Buffer]]:
    """The buffers of a choice, by loop."""
    nodes = list(nodes)
    depth = {n.cls: n for n in nodes if n.op == "Buffers"}
    out: dict[int, list[Buffer]] = {}
    for n in nodes:
        cls = decided(n)
        if cls in depth:
            out.setdefault(n.region, []).append(Buffer.of(n, depth[cls], prices[n.index], refill))
    return out


def busy(pipes: Mapping[str, int], held: Iterable[Buffer]) -> dict[str, int]:
    """Cycles of a trip by pipe, and those in which a pipe waits for moves of its core: into one buffer, or for several trips."""
    held = list(held)
    late = max((pause(long, b) for long in held for b in held), default=0)
    out = dict(pipes)
    for p in out:
        out[p] += sum(b.cycles for b in held if b.depth == ALONE and not b.late and waits(p, b.pipe))
        out[p] += late if any(b.trips > 1 and waits(p, b.pipe) for b in held) else 0
    return out


def waits(pipe: str, moving: str) -> bool:
    """Whether a pipe waits for a move into a single buffer: one of the same core that does not make the move itself."""
    return pipe != moving and pipe.split(".")[0] == moving.split(".")[0]


def uncovered(pipes: Mapping[str, int], held: Iterable[Buffer]) -> int:
    """Cycles a trip that the buffers of a loop leave uncovered."""
    held = list(held)
    handovers = max((b.handover for b in held if not b.late), default=0)
    alone = (b for b in held if b.trips > 1 and b.depth == ALONE)
    idle = (-(-sum(c for p, c in pipes.items() if waits(p, b.pipe)) // b.trips) for b in alone)
    return handovers + sum(idle)


def pause(long: Buffer, other: Buffer) -> int:
    """Cycles a trip by which a load for several trips is longer than what is in another buffer that its pipe fills lasts.

    It holds the pipe for as many trips' loads; a trip takes at least one of each.
    """
    if long.trips == 1 or other.trips > 1 or long.pipe != other.pipe:
        return 0
    return max(0, -(-(long.burst - (other.depth - 1) * (long.cycles + other.cycles)) // long.trips))
