"""Numbers of flags between cores in a kernel whose cores all meet (`T.sync_all`), which takes some of them for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tile_eg.errors import Note
from tile_eg.ir.index import Expr, Interval, bounds, wrap
from tile_eg.ir.machine import ALL_CROSS_IDS, SYNC_ALL_IDS
from tile_eg.ir.program import CrossSet, CrossWait, Loop, Node, SyncAll, When, walk

Streams = tuple[tuple[Node, ...], tuple[Node, ...]]
Moves = Mapping[Interval, int]


def cross_numbered(streams: Streams, ranges: Mapping[str, Interval], notes: list[Note]) -> Streams:
    """The streams of the two kinds of cores with other numbers for their flags, where the meeting takes some of the author's and
    there are enough others; as they are otherwise. What is computed keeps its distances."""
    nodes = [n for s in streams for n in walk(s)]
    used = sorted({bounds(wrap(n.id), ranges) for n in nodes if isinstance(n, CrossSet | CrossWait)})
    groups = list(_joined(used))
    taken = [k for low, high in groups for k in range(low, high + 1) if k in SYNC_ALL_IDS]
    moves = _moves(groups) if taken and any(isinstance(n, SyncAll) for n in nodes) else {}
    if not moves:
        return streams
    told = ", ".join(f"{low} is {to}" if low == high else f"{low} to {high} are {to} to {to + high - low}"
                     for (low, high), to in moves.items() if low != to)  # fmt: skip
    notes.append(Note(f"T.sync_all takes the cross-core flags {SYNC_ALL_IDS[0]} to {SYNC_ALL_IDS[-1]}, so that {told} instead"))
    cube, vector = (tuple(_node(n, moves, ranges) for n in s) for s in streams)
    return cube, vector


def _joined(used: list[Interval]) -> Iterator[Interval]:
    """Intervals that share a number, as one."""
    low, high = -1, -1
    for first, last in used:
        if first > high:
            if high >= 0:
                yield low, high
            low, high = first, last
        high = max(high, last)
    if high >= 0:
        yield low, high


def _moves(groups: list[Interval]) -> Moves:
    """The first numbers of the groups, the longest first; none where they do not fit."""
    free = [k for k in ALL_CROSS_IDS if k not in SYNC_ALL_IDS]
    found: dict[Interval, int] = {}
    for low, high in sorted(groups, key=lambda g: (g[0] - g[1], g[0])):
        count = high - low + 1
        start = next((k for k in free if all(k + n in free for n in range(count))), None)
        if start is None:
            return {}
        found[low, high] = start
        free = [k for k in free if not start <= k < start + count]
    return dict(sorted(found.items()))


def _node(n: Node, moves: Moves, ranges: Mapping[str, Interval]) -> Node:
    if isinstance(n, Loop | When):
        return replace(n, body=tuple(_node(x, moves, ranges) for x in n.body))
    if not isinstance(n, CrossSet | CrossWait):
        return n
    low, _ = bounds(wrap(n.id), ranges)
    (first, _), to = next((g, to) for g, to in moves.items() if g[0] <= low <= g[1])
    moved: Expr = wrap(n.id) + (to - first)
    return replace(n, id=moved.value if isinstance(n.id, int) else moved)  # type: ignore[arg-type]
