"""Flags between the cores of a kernel that is read as two streams: each kind of core does its own statements in their order.

So TileLang reads a kernel under AUTO_CV_COMBINE and AUTO_CV_SYNC. Behind what a core stores to a tensor that the other kind of
core loads it tells the other one, which waits before its load. The n-th store to a tensor belongs to the n-th load from it, trip
by trip of the loops that both stand in, and of further loops that are as long. Where nothing else makes a store of the next trip
wait for the load of what was there before, a flag back does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.nodes import On
from tile_eg.ir import program as pr
from tile_eg.ir.machine import CROSS_IDS
from tile_eg.ir.program import AIC, AIV
from tile_eg.ops.records import record

PIPES = {AIC: "FIX", AIV: "MTE3"}
"""The pipe by which a core stores to GM."""
FOLLOWED = 100_000
"""Sets and waits of the streams that are looked at for a wait that nothing ends."""


@record
class _Step:
    """What a statement loads from a tensor, or stores to it. `first` and `last` are its places: a number in each body, from the
    outermost; `around` are the loops and branches that all of it stands in."""

    core: str
    tensor: str
    written: bool
    first: tuple[int, ...]
    last: tuple[int, ...]
    around: tuple[Any, ...]
    span: Span | None


@record
class _Link:
    """A store and the load that waits for it, and in how many of the loops around each of them they come by equally often."""

    store: _Step
    load: _Step
    stored: int
    loaded: int

    def repeats(self) -> bool:
        return any(isinstance(n, pr.Loop) for n in (*self.store.around[: self.stored], *self.load.around[: self.loaded]))

    def comes_back(self, other: _Link) -> bool:
        """Whether the next trip's store waits, by the other link, for what the loading core does behind its load."""
        together = (
            other.store.core == self.load.core and other.load.first[: self.stored] == self.store.first[: self.stored]
            and other.store.first[: self.loaded] == self.load.first[: self.loaded]
        )  # fmt: skip
        return together and (other.store.first > self.load.last or other.load.last < self.store.first)


def with_handovers(statements: Sequence[Any], same: Any) -> list[Any]:
    """The statements with flags between the cores. `same` says whether a loop or a branch runs alike on both vector cores.

    TileError where loads and stores are not pairs, where there are not flags enough, or where the cores wait for each other.
    """
    links = list(_links(list(_steps(statements, (), ())), same))
    flags = _Flags({}, {})
    for link in links:
        flags.hand_over(link)
        if link.repeats() and not any(link.comes_back(other) for other in links):
            flags.give_back(link)
    made = list(_inserted(statements, (), flags.before, flags.behind))
    _check_ends(made)
    return made


def _links(steps: Sequence[_Step], same: Any) -> Iterator[_Link]:
    for tensor in dict.fromkeys(s.tensor for s in steps):
        cube, vector = ([s for s in steps if (s.tensor, s.core) == (tensor, core)] for core in (AIC, AIV))
        if not cube or not vector or not any(s.written for s in (*cube, *vector)):
            continue
        for a, b in _pairs(tensor, cube, vector):
            store, load = (a, b) if a.written else (b, a)
            yield _Link(store, load, *_depths(store, load, same))


@dataclass
class _Flags:
    """What stands before and behind statements, by their places; each flag has the next number."""

    before: dict[tuple[int, ...], list[On]]
    behind: dict[tuple[int, ...], list[On]]
    number: int = 0

    def hand_over(self, link: _Link) -> None:
        n, store, load = self.next(link), link.store, link.load
        self.add(self.behind, store.last[: link.stored + 1], On(store.core, pr.CrossSet(PIPES[store.core], n, store.span)))
        self.add(self.before, load.first[: link.loaded + 1], On(load.core, pr.CrossWait(n, load.span)))

    def give_back(self, link: _Link) -> None:
        """The next store waits until the load is done; the first one finds the place free, and the last load leaves it so."""
        n, store, load = self.next(link), link.store, link.load
        free, wait = On(load.core, pr.CrossSet("MTE2", n, load.span)), On(store.core, pr.CrossWait(n, store.span))
        self.add(self.before, load.first[:1], free)
        self.add(self.behind, load.last[: link.loaded + 1], free)
        self.add(self.before, store.first[: link.stored + 1], wait)
        self.add(self.behind, store.last[:1], wait)

    def next(self, link: _Link) -> int:
        n, self.number = self.number, self.number + 1
        if n not in CROSS_IDS:
            message = f"what the cores hand over here takes more than the {len(CROSS_IDS)} flags that there are between them"
            raise TileError(message, link.store.span, help="let one tile carry what several do")
        return n

    def add(self, to: dict[tuple[int, ...], list[On]], place: tuple[int, ...], on: On) -> None:
        to.setdefault(place, []).append(on)


def _steps(statements: Sequence[Any], place: tuple[int, ...], around: tuple[Any, ...]) -> Iterator[_Step]:
    """Loads and stores in the order of the text; what one statement became is one of them."""
    found: list[_Step] = []
    for s in _touches(statements, place, around):
        if found and (a := found[-1]).span is not None and (a.core, a.tensor, a.written, a.span) == (
            s.core, s.tensor, s.written, s.span,
        ):  # fmt: skip
            found[-1] = _joined(a, s)
        else:
            found.append(s)
    yield from found


def _touches(statements: Sequence[Any], place: tuple[int, ...], around: tuple[Any, ...]) -> Iterator[_Step]:
    for k, on in enumerate(statements):
        node, at = on.node, (*place, k)
        if isinstance(node, pr.Loop | pr.When):
            yield from _touches(node.body, at, (*around, node))
        elif isinstance(node, pr.Instr):
            for operands, written in ((node.reads(), False), (node.writes(), True)):
                for o in operands:
                    if isinstance(o, pr.Gm):
                        yield _Step(node.core, o.tensor, written, at, at, around, node.span)


def _joined(a: _Step, b: _Step) -> _Step:
    shared = 0
    while shared < min(len(a.around), len(b.around)) and a.last[: shared + 1] == b.first[: shared + 1]:
        shared += 1
    return replace(a, last=b.last, around=a.around[:shared])


def _pairs(tensor: str, cube: list[_Step], vector: list[_Step]) -> list[tuple[_Step, _Step]]:
    """Each store with its load: one by one, or all that follow one another on a core as one."""
    for c, v in ((cube, vector), (_runs(cube), _runs(vector))):
        if len(c) == len(v) and all(a.written != b.written for a, b in zip(c, v, strict=True)):
            return list(zip(c, v, strict=True))
    text = "the vector cores do so here" if any(s.written for s in vector) else "the vector cores load it here"
    raise TileError(
        f"the cores do not take turns at `{tensor}`: what one kind of core stores is not loaded by the other as often",
        cube[0].span, notes=((text, vector[0].span),),
        help="let each store of the one have a load of the other, or write the flags: T.set_cross_flag(pipe, n)",
    )  # fmt: skip


def _runs(steps: list[_Step]) -> list[_Step]:
    """Steps of one direction that follow one another, as one."""
    found: list[_Step] = []
    for s in steps:
        if found and found[-1].written == s.written:
            found[-1] = _joined(found[-1], s)
        else:
            found.append(s)
    return found


def _depths(a: _Step, b: _Step, same: Any) -> tuple[int, int]:
    """In how many of the loops around them the two come by equally often: the innermost such place."""
    shared = 0
    while (
        shared < min(len(a.around), len(b.around))
        and a.first[: shared + 1] == b.first[: shared + 1]
        and same(a.around[shared])
    ):
        shared += 1
    best = (shared, shared)
    for i in range(shared, len(a.around) + 1):
        for j in range(shared, len(b.around) + 1):
            times = _times(a.around[shared:i]), _times(b.around[shared:j])
            if times[0] is not None and times[0] == times[1] and (i, j) >= best:
                best = (i, j)
    return best


def _times(loops: Sequence[Any]) -> int | None:
    """How often the body of these loops is done; None where that is not known."""
    if all(isinstance(n, pr.Loop) and n.until is None for n in loops):
        return prod(n.trips for n in loops)
    return None


def _inserted(statements: Sequence[Any], place: tuple[int, ...], before: dict, behind: dict) -> Iterator[Any]:
    for k, on in enumerate(statements):
        at = (*place, k)
        yield from before.get(at, ())
        if isinstance(on.node, pr.Loop | pr.When):
            on = replace(on, node=replace(on.node, body=tuple(_inserted(on.node.body, at, before, behind))))
        yield on
        yield from behind.get(at, ())


def _check_ends(statements: Sequence[Any]) -> None:
    """TileError where the two streams come to wait for each other."""
    streams = {core: _flags(statements, core) for core in (AIC, AIV)}
    now = {core: next(events, None) for core, events in streams.items()}
    count: Counter[int | Any] = Counter()
    for _ in islice(iter(int, 1), FOLLOWED):
        able = [core for core, e in now.items() if e is not None and (isinstance(e, pr.CrossSet) or count[e.id])]
        if not able:
            break
        for core in able:
            event: Any = now[core]
            count[event.id] += 1 if isinstance(event, pr.CrossSet) else -1
            now[core] = next(streams[core], None)
    waiting = [e for e in now.values() if isinstance(e, pr.CrossWait) and not count[e.id]]
    if len(waiting) == 2:
        raise TileError(
            "the cube core and the vector cores would wait for each other: what is loaded here is stored behind that",
            waiting[0].span, notes=(("and the vector cores wait here", waiting[1].span),),
            help="each core does its statements in their order: let one of them store before it loads",
        )  # fmt: skip


def _flags(statements: Sequence[Any], core: str) -> Iterator[Any]:
    for on in statements:
        if isinstance(on.node, pr.Loop):
            for _ in range(on.node.trips):
                yield from _flags(on.node.body, core)
        elif isinstance(on.node, pr.When):
            yield from _flags(on.node.body, core)
        elif on.core == core and isinstance(on.node, pr.CrossSet | pr.CrossWait):
            yield on.node
