"""First fit: addresses for storages whose lives are known, where they share a place only when none has to wait for it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, takewhile

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


class Rivals:
    """Which storages may not lie anyhow beside each other, and how they have to lie: of each storage all others."""

    def __init__(self, group: Iterable[Placed]) -> None:
        by_birth = sorted(group, key=lambda x: (x[1].first, x[0]))
        self.of: dict[int, list[tuple[int, str]]] = {sid: [] for sid, *_ in by_birth}
        for i, j in _near([life for _, life, _ in by_birth], {sid: i for i, (sid, *_) in enumerate(by_birth)}):
            x, y = sorted((by_birth[i], by_birth[j]), key=lambda x: x[0])
            if how := _together(x, y):
                self.of[x[0]].append((y[0], how))
                self.of[y[0]].append((x[0], how))


def _near(by_birth: Sequence[Life], place: Mapping[int, int]) -> set[tuple[int, int]]:
    """Pairs, by place, that are live at one time or one behind the other, or that may have one place; all others lie anyhow."""
    born = [life.first for life in by_birth]
    pairs = set[tuple[int, int]]()
    for i, life in enumerate(by_birth):
        pairs |= {(i, j) for j in range(i + 1, bisect_right(born, life.last + 1))}
        drained = range(bisect_right(born, life.drained)) if life.drained >= 0 else ()
        pairs |= {(min(i, j), max(i, j)) for j in (*drained, *(place[h] for h in life.heirs if h in place)) if i != j}
    return pairs


def packed(
    group: Sequence[Placed], align: int, rivals: Rivals, banks: Banks = ANY_BANK, base: int = 0, aside: bool = False
) -> tuple[dict[int, int], int]:
    """First fit in the given order, from address `base` on: addresses, and where they end.

    `aside`: of the places that take no room more, blocks for rows have that with the fewest results in its banks.
    """
    taken: dict[int, tuple[int, int]] = {}
    starts = [base]
    for sid, _, storage in group:
        size = storage.bytes
        met = sorted((*taken[other], how) for other, how in rivals.of[sid] if other in taken)
        free = _free(starts, partial(banks.at, sid), size, met)
        at = _aside(free, sid, size, taken, banks) if aside and sid in banks.results else next(free)
        taken[sid] = at, at + size
        for start in (at, -(-(at + size) // align) * align):
            if starts[(k := bisect_left(starts, start)) : k + 1] != [start]:
                starts.insert(k, start)
    return {sid: at for sid, (at, _) in taken.items()}, max((end for _, end in taken.values()), default=base)


def _free(
    starts: Sequence[int], at: Callable[[int], int], size: int, met: Sequence[tuple[int, int, str]]
) -> Iterator[int]:  # fmt: skip
    """The addresses, the first that `at` allows from each of the starts on, at which so many bytes are in no rival's way.

    The rivals that are `met` are in order: those that end before an address are in the way of none behind it.
    """
    apart, same = [x for x in met if x[2] is APART], [x for x in met if x[2] is SAME]
    k = behind = 0
    while k < len(starts):
        a = at(starts[k])
        while behind < len(apart) and apart[behind][0] < a + size:
            if a < (end := apart[behind][1]):
                k = bisect_left(starts, end, k + 1, key=at)
                if k == len(starts):
                    return
                a = at(starts[k])
            behind += 1
        if not any(a != begin and a < end and begin < a + size for begin, end, _ in same):
            yield a
        k += 1


def _aside(free: Iterator[int], sid: int, size: int, taken: Mapping[int, tuple[int, int]], banks: Banks) -> int:
    """The address, of those that take no room more than the first one, with the fewest results in its banks."""
    first = next(free)
    limit = max([first + size, *(end for _, end in taken.values())])
    able = (first, *takewhile(lambda a: a + size <= limit, free))
    return min(able, key=lambda a: (banks.in_the_way(sid, a, taken), a))


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
