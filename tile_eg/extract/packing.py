"""First fit: addresses for storages whose lives are known, where they share a place only when none has to wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tile_eg.extract.banks import Banks
from tile_eg.extract.schedule import Storage

ANY_BANK = Banks()


@dataclass
class Life:
    """First and last time of a storage on the line of issue (two ticks a step: it reads, then writes).

    `gap` is the time in a loop between the last read of what came round and the write of what goes round; `at` is the loop and
    the lag of all its accesses there. A storage whose whole life is in the gap, at the same loop and lag, may have the place.
    `drained` is the time in the next tile of a persistent kernel by which what is stored last has left. `heirs` are made of it by
    instructions that write where they read: they may have its very place, which nothing else has meanwhile.
    """

    first: int
    last: int
    in_place_of: set[int] = field(default_factory=set)
    gap: tuple[int, int] | None = None
    at: tuple[tuple[int, ...], int] | None = None
    drained: int = -1
    heirs: frozenset[int] = frozenset()


Placed = tuple[int, Life, Storage]
APART, SAME = "apart", "same"
"""How two storages lie that cannot lie anywhere: apart, or else at the very same place."""


def packed(
    group: Sequence[Placed], align: int, banks: Banks = ANY_BANK, base: int = 0, aside: bool = False
) -> tuple[dict[int, int], int]:
    """First fit in the given order, from address `base` on: addresses, and where they end.

    `aside`: of the places that take no room more, blocks for rows have that with the fewest results in its banks.
    """
    addresses: dict[int, int] = {}
    starts, taken = {base}, list[tuple[Placed, int, int]]()
    for item in group:
        sid, size = item[0], item[2].bytes
        ends = sorted({banks.at(sid, a) for a in starts})
        rivals = [(at, end, how) for other, at, end in taken if (how := _together(item, other))]
        free = (a for a in ends if not any(a < end and b < a + size and (how is APART or a != b) for b, end, how in rivals))
        at = _aside(free, sid, size, taken, banks) if aside and sid in banks.results else next(free)
        addresses[sid] = at
        taken.append((item, at, at + size))
        starts |= {at, -(-(at + size) // align) * align}
    return addresses, max((end for _, _, end in taken), default=base)


def _aside(free: Iterator[int], sid: int, size: int, taken: Sequence[tuple[Placed, int, int]], banks: Banks) -> int:
    """The address, of those that take no room more than the first one, with the fewest results in its banks."""
    first = next(free)
    limit = max([first + size, *(end for _, _, end in taken)])
    spans = {other[0]: (at, end) for other, at, end in taken}
    return min((first, *(a for a in free if a + size <= limit)), key=lambda a: (banks.in_the_way(sid, a, spans), a))


def _together(x: Placed, y: Placed) -> str | None:
    """How two storages have to lie; None where they may overlap, since they are not needed at a time."""
    (i, a, s), (j, b, t) = x, y
    if j in a.heirs or i in b.heirs:
        return SAME
    if _meet(a, b):
        return APART
    if _in_gap(a, b) or _in_gap(b, a):
        edges = _gap_edges(x, y) if _in_gap(a, b) else _gap_edges(y, x)
    elif touch(a, b):
        edges = [j in a.in_place_of or i in b.in_place_of]
    else:
        return None
    if not edges:
        return None
    return SAME if all(edges) and s.bytes == t.bytes and s.dtype == t.dtype else APART


def _meet(a: Life, b: Life) -> bool:
    if b.first <= a.drained or a.first <= b.drained:
        return True
    return a.first <= b.last and b.first <= a.last and not _in_gap(a, b) and not _in_gap(b, a)


def _in_gap(tenant: Life, owner: Life) -> bool:
    if not owner.gap or tenant.at != owner.at:
        return False
    return owner.gap[0] < tenant.first and tenant.last < owner.gap[1]


def touch(a: Life, b: Life) -> bool:
    """b is written by the very step that reads a last: they may share a place only exactly."""
    return a.last + 1 == b.first or b.last + 1 == a.first


def _gap_edges(tenant: Placed, owner: Placed) -> list[bool]:
    """At each edge of the gap where one step reads the one and writes the other: whether that works in place."""
    (i, life, _), (j, around, _) = tenant, owner
    assert around.gap
    edges = [j in life.in_place_of] if around.gap[0] + 1 == life.first else []
    return edges + ([i in around.in_place_of] if life.last + 1 == around.gap[1] else [])


def least_bytes(lives: Sequence[tuple[Life, int]]) -> int:
    """The most bytes that are needed at one time, wherever they lie; in its gap a storage needs none."""
    moments = sorted({life.first for life, _ in lives})
    return max((sum(size for life, size in lives if _needed(life, m)) for m in moments), default=0)


def _needed(life: Life, moment: int) -> bool:
    return life.first <= moment <= life.last and not (life.gap and life.gap[0] < moment < life.gap[1])
