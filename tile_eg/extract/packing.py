"""First fit: addresses for storages whose lives are known, where they share a place only when none has to wait for it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

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

    @property
    def key(self) -> tuple[object, ...]:
        """What is equal where lives are."""
        return self.first, self.last, frozenset(self.in_place_of), self.gap, self.at, self.drained, self.heirs


Placed = tuple[int, Life, Storage]
APART, SAME = "apart", "same"
"""How two storages lie that cannot lie anywhere: apart, or else at the very same place."""


class Ways(dict[int, "str | None"]):
    """How a storage has to lie to each other one that it was asked of (None: anyhow)."""

    def __init__(self, of: Placed, known: Known) -> None:
        self.of, self.known = of, known

    def __missing__(self, other: int) -> str | None:
        """Asked once of each two: of the one with the smaller number first."""
        there = self.known[other]
        way = _together(*sorted((self.of, there.of), key=lambda x: x[0]))
        self[other] = there[self.of[0]] = way
        return way


Known = dict[int, Ways]
"""By storage."""


def packed(
    group: Sequence[Placed], align: int, banks: Banks = ANY_BANK, base: int = 0, aside: bool = False, known: Known | None = None
) -> tuple[dict[int, int], int]:
    """First fit in the given order, from address `base` on: addresses, and where they end.

    `aside`: of the places that take no room more, blocks for rows have that with the fewest results in its banks. Packings of
    the same lives share what is `known`.
    """
    addresses: dict[int, int] = {}
    starts, taken, known = {base}, list[tuple[int, int, int]](), {} if known is None else known
    for item in group:
        sid, size = item[0], item[2].bytes
        ways = known.setdefault(sid, Ways(item, known))
        rivals = [(at, end, how) for other, at, end in taken if (how := ways[other])]
        free = _free(sorted({banks.at(sid, a) for a in starts} if banks.places(sid) else starts), size, rivals)
        at = _aside(free, sid, size, taken, banks) if aside and sid in banks.results else next(free)
        addresses[sid] = at
        taken.append((sid, at, at + size))
        starts |= {at, -(-(at + size) // align) * align}
    return addresses, max((end for _, _, end in taken), default=base)


def _free(ends: Sequence[int], size: int, rivals: Sequence[tuple[int, int, str]]) -> Iterator[int]:
    """The addresses, of some in order, at which so many bytes are in no rival's way."""
    k = 0
    while k < len(ends):
        a, behind = ends[k], ends[k] + size
        for at, end, how in rivals:
            if a < end and at < behind and (how is APART or a != at):
                k = bisect_left(ends, end, k + 1) if how is APART else k + 1
                break
        else:
            yield a
            k += 1


def _aside(free: Iterator[int], sid: int, size: int, taken: Sequence[tuple[int, int, int]], banks: Banks) -> int:
    """The address, of those that take no room more than the first one, with the fewest results in its banks."""
    first = next(free)
    limit = max([first + size, *(end for _, _, end in taken)])
    spans = {other: (at, end) for other, at, end in taken}
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
    needed = [(*part, size) for life, size in lives for part in _needed(life)]
    begun, over = sorted((first, size) for first, _, size in needed), sorted((last, size) for _, last, size in needed)
    more, less = ([0, *accumulate(size for _, size in part)] for part in (begun, over))
    starts, ends = ([at for at, _ in part] for part in (begun, over))
    return max((more[bisect_right(starts, m)] - less[bisect_left(ends, m)] for m in {life.first for life, _ in lives}), default=0)


def _needed(life: Life) -> list[tuple[int, int]]:
    """The times, from the first to the last one, at which a storage needs its bytes."""
    if life.gap and life.gap[0] < life.gap[1]:
        return [(life.first, life.gap[0]), (life.gap[1], life.last)]
    return [(life.first, life.last)]
