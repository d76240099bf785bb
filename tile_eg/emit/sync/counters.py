"""Counters for edges between cores: one each while there are enough, else one for several handovers.

A counter has no names: the n-th wait is over when it was set n times. Two edges whose sets come from one pipe, which sets in its
order, may share one where the other core waits for them in an order in which that is enough. Whether it is, a replay says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

from tile_eg.emit.sync.cross import CrossEdge
from tile_eg.emit.sync.trace import FlagsRunOut
from tile_eg.ir import machine

CROSS_IDS = len(machine.CROSS_IDS)


def share_counters(edges: list[CrossEdge], in_order: Callable[[], bool]) -> list[int]:
    """The number of each edge's counter. Edges that share one are told so; `in_order` judges them as they are then.

    FlagsRunOut where too few of them can.
    """
    needed = len(edges)
    while (count := len(set(_counters(edges)))) > CROSS_IDS:
        if not any(_together(edges, a, b, in_order) for a, b in _alike(edges)):
            shared = f", {count} where handovers in one order share theirs" if count < needed else ""
            raise FlagsRunOut(f"{needed} cross-core counters are needed{shared}, there are {CROSS_IDS}")
    number = {counter: n for n, counter in enumerate(dict.fromkeys(_counters(edges)))}
    return [number[c] for c in _counters(edges)]


def _counters(edges: list[CrossEdge]) -> list[int]:
    """Where each edge counts: by the number of the first edge that counts there."""
    return [n if e.counter is None else e.counter for n, e in enumerate(edges)]


def _alike(edges: list[CrossEdge]) -> list[tuple[int, int]]:
    """Pairs of counters that one pipe sets: first those that free what was read, then those that tell what is full."""
    held = dict.fromkeys(_counters(edges))
    pairs = [(a, b) for a, b in combinations(held, 2) if (edges[a].src, edges[a].pipe) == (edges[b].src, edges[b].pipe)]
    return sorted(pairs, key=lambda p: (edges[p[0]].free != edges[p[1]].free, not edges[p[0]].free, p[1] - p[0], p))


def _together(edges: list[CrossEdge], a: int, b: int, in_order: Callable[[], bool]) -> bool:
    """Lets the edges of two counters share the first one, where that keeps everything in order."""
    kept = list(edges)
    edges[:] = [replace(e, counter=a) if c in (a, b) else e for c, e in zip(_counters(edges), edges, strict=True)]
    if in_order():
        return True
    edges[:] = kept
    return False


__all__ = ["CROSS_IDS", "share_counters"]
